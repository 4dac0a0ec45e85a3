// Prints the flow records of captures or interfaces. The arguments are the options of ringtap_open:
//
//	cargo build --release -p ringtap-c
//	cd examples/go && go run . read=../office.pcap 'flows=udp port 53'
package main

/*
#cgo CFLAGS: -I${SRCDIR}/../../capi/include
#cgo LDFLAGS: -L${SRCDIR}/../../target/release -lringtap_c -Wl,-rpath,${SRCDIR}/../../target/release
#include <stdlib.h>
#include <ringtap.h>
*/
import "C"

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"unsafe"
)

// A Run yields the flow records of packets. One goroutine at a time reads it.
type Run struct {
	run  *C.ringtap_run
	flow C.ringtap_flow
}

// Open starts a run.
func Open(options []string) (*Run, error) {
	list := make([]*C.char, len(options)+1) // the last one is nil
	for i, option := range options {
		list[i] = C.CString(option)
		defer C.free(unsafe.Pointer(list[i]))
	}
	var message [512]C.char
	run := C.ringtap_open(&list[0], &message[0], C.size_t(len(message)))
	if run == nil {
		return nil, errors.New(C.GoString(&message[0]))
	}
	return &Run{run: run}, nil
}

// Next waits for the next record, and returns whether there is one.
func (r *Run) Next() (bool, error) {
	got := C.ringtap_next(r.run, &r.flow, C.size_t(unsafe.Sizeof(r.flow)))
	if got < 0 {
		return false, errors.New(C.GoString(C.ringtap_error(r.run)))
	}
	return got == 1, nil
}

// Text is a value of the current record, by the name of its field.
func (r *Run) Text(field string, index int) string {
	name := C.CString(field)
	defer C.free(unsafe.Pointer(name))
	var text [256]C.char
	C.ringtap_text(r.run, name, C.size_t(index), &text[0], C.size_t(len(text)))
	return C.GoString(&text[0])
}

// Ends are the addresses of the source and the destination.
func (r *Run) Ends() (source, destination netip.Addr) {
	length := 4
	if r.flow.ip_version == 6 {
		length = 16
	}
	address := func(octets *[16]C.uint8_t) netip.Addr {
		address, _ := netip.AddrFromSlice(unsafe.Slice((*byte)(&octets[0]), length))
		return address
	}
	return address(&r.flow.source), address(&r.flow.destination)
}

// Close stops the run.
func (r *Run) Close() {
	C.ringtap_close(r.run)
	r.run = nil
}

func main() {
	run, err := Open(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	var flows, packets, octets C.uint64_t
	var more bool
	for more, err = run.Next(); more; more, err = run.Next() {
		flow := &run.flow
		source, destination := run.Ends()
		fmt.Println(flow.start_ms, source, flow.source_port, ">", destination, flow.destination_port, "protocol", flow.protocol,
			"packets", fmt.Sprintf("%d+%d", flow.packets[0], flow.packets[1]), C.GoString(&flow.community_id[0]),
			C.GoString(flow.application), run.Text("dnsQueryName", 0))
		flows++
		packets += flow.packets[0] + flow.packets[1]
		octets += flow.octets[0] + flow.octets[1]
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	fmt.Printf("%d flows, %d packets, %d octets, %d lost\n", flows, packets, octets, C.ringtap_lost(run.run))
	run.Close()
	if err != nil {
		os.Exit(1)
	}
}
