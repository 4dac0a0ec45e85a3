//! Restores the VLAN tag that the kernel removed from a frame.
//!
//! ```text
//!            | room 4 | destination 6 | source 6 | type … |      as the kernel writes it
//!            | destination 6 | source 6 | tag 4 | type … |      restored: addresses moved to the front
//! ```

use crate::live::sys::block_ring::{HEADROOM, RawFrame};

const ADDRESSES: usize = 12;

/// EtherTypes of IPv4 and ARP, which every kernel handles, and of IPv6.
const TAKEN: [[u8; 2]; 2] = [[0x08, 0x00], [0x08, 0x06]];
const IPV6: [u8; 2] = [0x86, 0xdd];

/// 802.1Q, used where the kernel does not report the tag's type.
const TYPE_802_1Q: u16 = 0x8100;

/// Whether the kernel may count the frame as dropped (`rx_dropped`) although it was received here.
/// After it removes a tag, the kernel looks for a protocol handler again and may find none.
#[inline]
pub(super) fn may_be_dropped(raw: &RawFrame<'_>, ipv6: bool) -> bool {
    if raw.status & libc::TP_STATUS_VLAN_VALID == 0 {
        return false;
    }
    let kind = raw.bytes.get(HEADROOM + ADDRESSES..).and_then(<[u8]>::first_chunk);
    !kind.is_some_and(|kind| TAKEN.contains(kind) || ipv6 && *kind == IPV6)
}

/// Returns the frame with its tag, if one was removed, and the bytes added by the tag (4 or 0).
#[inline]
pub(super) fn restored<'a>(raw: RawFrame<'a>) -> (&'a [u8], u32) {
    let RawFrame { bytes, status, tag, tag_type, .. } = raw;
    if status & libc::TP_STATUS_VLAN_VALID == 0 || bytes.len() < HEADROOM + ADDRESSES {
        return (bytes.get(HEADROOM..).unwrap_or_default(), 0);
    }
    let named = status & libc::TP_STATUS_VLAN_TPID_VALID != 0;
    let tag_type = if named { tag_type } else { TYPE_802_1Q };
    let [t0, t1] = tag_type.to_be_bytes();
    let [v0, v1] = tag.to_be_bytes();
    bytes.copy_within(HEADROOM..HEADROOM + ADDRESSES, 0);
    if let Some(place) = bytes.get_mut(ADDRESSES..ADDRESSES + HEADROOM) {
        place.copy_from_slice(&[t0, t1, v0, v1]);
    }
    (bytes, HEADROOM as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(bytes: &mut [u8], status: u32) -> RawFrame<'_> {
        RawFrame {
            bytes,
            original_len: 0,
            ts_ns: 0,
            status,
            tag: 0x2064,
            tag_type: 0x88a8,
            virtio: None,
        }
    }

    #[test]
    fn a_tag_is_put_back_between_addresses_and_type() {
        let mut bytes: Vec<u8> = (0..24).collect();
        let status = libc::TP_STATUS_VLAN_VALID | libc::TP_STATUS_VLAN_TPID_VALID;
        let (frame, more) = restored(raw(&mut bytes, status));
        let addresses: Vec<u8> = (4..16).collect();
        let rest: Vec<u8> = (16..24).collect();
        assert_eq!(more, 4);
        assert_eq!(frame, [&addresses[..], &[0x88, 0xa8, 0x20, 0x64], &rest].concat());
    }

    #[test]
    fn tagged_frames_of_unsupported_protocols_may_be_dropped_later() {
        let tagged = libc::TP_STATUS_VLAN_VALID;
        let cases = [
            (tagged, [0x08, 0x00], false),
            (tagged, [0x08, 0x06], false),
            (tagged, [0x86, 0xdd], false),
            (tagged, [0x81, 0x00], true),
            (tagged, [0x88, 0x47], true),
            (0, [0x88, 0x47], false),
        ];
        for (status, kind, dropped) in cases {
            let mut bytes = [&[0; HEADROOM + ADDRESSES][..], &kind, &[0; 9]].concat();
            assert_eq!(may_be_dropped(&raw(&mut bytes, status), true), dropped, "{kind:?}");
        }
        let mut bytes = [&[0; HEADROOM + ADDRESSES][..], &IPV6].concat();
        assert!(may_be_dropped(&raw(&mut bytes, tagged), false));
        assert!(may_be_dropped(&raw(&mut [0; 9], tagged), true));
    }

    #[test]
    fn a_tag_without_a_type_is_802_1q() {
        let mut bytes: Vec<u8> = (0..24).collect();
        let (frame, _) = restored(raw(&mut bytes, libc::TP_STATUS_VLAN_VALID));
        assert_eq!(frame[12..16], [0x81, 0, 0x20, 0x64]);
    }

    #[test]
    fn a_frame_without_tag_or_addresses_is_unchanged() {
        let mut bytes: Vec<u8> = (0..24).collect();
        assert_eq!(restored(raw(&mut bytes, 0)), (&(4..24).collect::<Vec<u8>>()[..], 0));
        let mut short: Vec<u8> = (0..15).collect();
        let status = libc::TP_STATUS_VLAN_VALID;
        assert_eq!(restored(raw(&mut short, status)), (&(4..15).collect::<Vec<u8>>()[..], 0));
    }
}
