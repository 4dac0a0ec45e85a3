//! Names of unsupported link types, for messages.

use std::fmt;

use super::LinkType;

/// The number, and the name from the list of link types (`LINKTYPE_…`).
impl fmt::Display for LinkType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0, name(self.0)) {
            (number @ 147..=162, _) => write!(f, "{number} (USER{})", number - 147),
            (number, Some(name)) => write!(f, "{number} ({name})"),
            (number, None) => write!(f, "{number}"),
        }
    }
}

fn name(number: u16) -> Option<&'static str> {
    Some(match number {
        2 => "EXP_ETHERNET",
        3 => "AX25",
        4 => "PRONET",
        5 => "CHAOS",
        8 => "SLIP",
        106 => "ATM_CLIP",
        114 => "LTALK",
        118 => "CISCO_IOS",
        123 => "SUNATM",
        138 => "APPLE_IP_OVER_IEEE1394",
        139 => "MTP2_WITH_PHDR",
        140 => "MTP2",
        141 => "MTP3",
        142 => "SCCP",
        143 => "DOCSIS",
        144 => "LINUX_IRDA",
        165 => "BACNET_MS_TP",
        169 => "GPRS_LLC",
        177 => "LINUX_LAPD",
        182 => "MFR",
        187 => "BLUETOOTH_HCI_H4",
        189 => "USB_LINUX",
        195 => "IEEE802_15_4_WITHFCS",
        197 => "ERF",
        201 => "BLUETOOTH_HCI_H4_WITH_PHDR",
        203 => "LAPD",
        209 => "I2C_LINUX",
        220 => "USB_LINUX_MMAPPED",
        224 => "FC_2",
        227 => "CAN_SOCKETCAN",
        230 => "IEEE802_15_4_NOFCS",
        231 => "DBUS",
        243 => "MPEG_2_TS",
        244 => "NG40",
        247 => "INFINIBAND",
        248 => "SCTP",
        249 => "USBPCAP",
        251 => "BLUETOOTH_LE_LL",
        252 => "WIRESHARK_UPPER_PDU",
        253 => "NETLINK",
        254 => "BLUETOOTH_LINUX_MONITOR",
        256 => "BLUETOOTH_LE_LL_WITH_PHDR",
        259 => "EPON",
        264 => "ISO_14443",
        271 => "VSOCK",
        272 => "NORDIC_BLE",
        273 => "DOCSIS31_XRA31",
        274 => "ETHERNET_MPACKET",
        278 => "OPENVIZSLA",
        280 => "VPP_DISPATCH",
        281 => "DSA_TAG_BRCM",
        283 => "IEEE802_15_4_TAP",
        284 => "DSA_TAG_DSA",
        285 => "DSA_TAG_EDSA",
        _ => return None,
    })
}
