/* ringtap: flow records of network traffic, from captures and interfaces.
 *
 *     const char *options[] = {"read=office.pcap", "filter=not port 22", NULL};
 *     char error[512];
 *     ringtap_run *run = ringtap_open(options, error, sizeof error);
 *     ringtap_flow flow;
 *     int got;
 *     if (run == NULL) { ... error ... }
 *     while ((got = ringtap_next(run, &flow, sizeof flow)) == 1) { ... flow ... }
 *     if (got < 0) { ... ringtap_error(run) ... }
 *     ringtap_close(run);
 *
 * A run has a thread of its own, and handles no signals. Several runs can be open at the same time. One thread at a time
 * reads a run; any thread may stop it. A NULL argument is an error, unless it says otherwise. All texts are UTF-8.
 *
 * Over captures the run waits for the program, and no record is lost. Over interfaces it does not wait: if the program is slow
 * for longer than the buffers suffice, records are lost and counted (ringtap_lost).
 *
 * Link with -lringtap_c, or with libringtap_c.a -lm -lpthread -ldl.
 */
#ifndef RINGTAP_H
#define RINGTAP_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ringtap_run ringtap_run;

/* A record of one flow. The source is the initiator. Of two values, [0] is from the source, [1] to it. */
typedef struct ringtap_flow {
    uint64_t start_ms; /* earliest packet, milliseconds since 1970 UTC, rounded down */
    uint64_t end_ms;   /* latest packet */
    uint64_t packets[2];
    uint64_t octets[2];      /* of layer 3: headers of IP and up */
    uint8_t source[16];      /* in network order; IPv4: the first 4 octets, zeros follow */
    uint8_t destination[16];
    uint16_t source_port;    /* 0 without ports */
    uint16_t destination_port;
    uint16_t tcp_flags[2];   /* all flags of TCP seen, or-ed */
    uint16_t vlan;           /* outermost VLAN; 0 without a tag */
    uint8_t ip_version;      /* 4 or 6 */
    uint8_t protocol;        /* number of the IP protocol */
    uint8_t end_reason;      /* 1 idle, 2 active, 3 end detected, 4 forced, 5 lack of resources */
    uint8_t reserved[3];     /* zeros */
    char community_id[32];   /* Community ID version 1, seed 0 */
    const char *application; /* label of the application, or ""; valid until the next call of ringtap_next */
} ringtap_flow;

/* The version of the library, such as "0.1.0". */
const char *ringtap_version(void);

/* Starts a run. The options are flags of `ringtap monitor` by their long names, with or without "--": "flag=value", "switch".
 * A list that is given again has several values: "read=a.pcap", "read=b.pcap". NULL ends the array. "flows=EXPRESSION" is
 * further: the program gets the records that it selects, in the language of `ringtap query`. Flags that only the command can
 * have, such as web, are an error.
 *
 * Returns NULL on failure. Then `error`, if it is not NULL, has as much of the message as fits, and a NUL. */
ringtap_run *ringtap_open(const char *const *options, char *error, size_t error_size);

/* Waits for the next record. `size` is sizeof(ringtap_flow): a later version of the library adds members at the end only,
 * and writes no more than `size` bytes.
 *
 * Returns 1 with a record, 0 at the end, -1 after an error. An error of the run comes after its last record, with a report of
 * what was read, if there is one. */
int ringtap_next(ringtap_run *run, ringtap_flow *flow, size_t size);

/* A value of the record that ringtap_next returned last, by the name of its field in docs/OUTPUTS.md, such as
 * "tlsServerName". `index` counts the values of a list from 0; otherwise it is 0.
 *
 * Writes as much of the text as fits into `size` bytes, up to the end of a letter, with a NUL after it. Returns the length of
 * the whole text; 0 if the record has no such value; -1 if there is no such field, or no record. `text` may be NULL if `size`
 * is 0. Numbers are texts, too. */
int64_t ringtap_text(ringtap_run *run, const char *field, size_t index, char *text, size_t size);

/* The same for numbers; times are milliseconds since 1970. Returns 1 with a number, 0 if the record has no such value, -1
 * after an error. */
int ringtap_number(ringtap_run *run, const char *field, size_t index, uint64_t *number);

/* The message of the last call that returned -1, or ""; valid until the next one that does. */
const char *ringtap_error(const ringtap_run *run);

/* After the end: the report, as `ringtap monitor --report json` prints it; valid until the run is closed. Before the end, and
 * without a report: NULL. Its `notices` are what the command prints as warnings. */
const char *ringtap_report(const ringtap_run *run);

/* After the end: records that the program did not get, because it was slow. */
uint64_t ringtap_lost(const ringtap_run *run);

/* Ends reading. The records of flows that were open follow, and then the end. Any thread may call it, but no handler of a
 * signal. */
void ringtap_stop(const ringtap_run *run);

/* Stops the run, waits for its end, and frees it. Records that were not read are lost. No other call of the run may be active.
 * NULL is ignored. */
void ringtap_close(ringtap_run *run);

#ifdef __cplusplus
}
#endif

#endif
