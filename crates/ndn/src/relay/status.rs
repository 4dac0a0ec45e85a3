//! The status of a face, as data sets and events show it.

use crate::faces::{Face, Lost};
use crate::forwarder::FaceUse;
use crate::packets::management::{FaceStatus, LOCAL_FIELDS};

pub(crate) fn status_of(number: u32, face: &Face, usage: FaceUse) -> FaceStatus {
    let counters = face.counters();
    FaceStatus {
        face: number.into(),
        uri: face.remote().to_string(),
        local_uri: face.local().to_owned(),
        expiration_ms: None,
        scope: face.is_local().into(),
        persistency: face.persistence().number(),
        link_type: face.is_shared().into(),
        mtu: Some(face.mtu() as u64),
        in_interests: counters.interests_in,
        in_data: counters.data_in,
        in_nacks: counters.nacks_in,
        out_interests: counters.interests_out,
        out_data: counters.data_out,
        out_nacks: counters.nacks_out,
        in_bytes: counters.octets_in,
        out_bytes: counters.octets_out,
        flags: if face.has_local_fields() { LOCAL_FIELDS } else { 0 },
        exchanges: usage.exchanges,
        cs_hits: usage.cs_hits,
        pending: usage.pending,
        lost_frames: Lost::ALL.map(|reason| counters.lost(reason)).iter().sum(),
    }
}
