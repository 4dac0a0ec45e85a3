//! Data: a name, its content, and a signature over both.
//!
//! ```text
//!  06 len | Name | MetaInfo {ContentType, FreshnessPeriod, FinalBlockId} | Content | SignatureInfo | SignatureValue |
//!         └────────────────────────────── signed ─────────────────────────────────────────┘
//! ```

use sha2::{Digest, Sha256};

use crate::packets::write::{element_len, put, put_head, put_value, value_len};
use crate::packets::{Element, Elements, Error, Name, kind};

/// A view of a Data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data<'a> {
    /// The name.
    pub name: Name<'a>,
    /// The ContentType; 0: payload.
    pub content_type: u64,
    /// The FreshnessPeriod in milliseconds: how long the Data satisfies MustBeFresh; 0: never.
    pub freshness_ms: u64,
    /// The content.
    pub content: &'a [u8],
    /// The bytes of the whole packet.
    pub wire: &'a [u8],
}

impl<'a> Data<'a> {
    /// Parses a Data; `wire` must hold exactly this packet. The signature is not verified.
    pub fn read(wire: &'a [u8]) -> Result<Self, Error> {
        let Element { kind: outer, value: body } = Element::only(wire)?;
        if outer != kind::DATA {
            return Err(Error::UnknownPacket);
        }
        let mut elements = Elements::of(body);
        let (name, _) = Name::of(&elements.next().ok_or(Error::NoName)??)?;
        let mut read = Self { name, content_type: 0, freshness_ms: 0, content: &[], wire };
        let mut latest = 0;
        let mut signature_elements = 0;
        for element in elements {
            let element = element?;
            let rank = match element.kind {
                kind::META_INFO => 1,
                kind::CONTENT => 2,
                kind::SIGNATURE_INFO => 3,
                kind::SIGNATURE_VALUE => 4,
                _ => 0,
            };
            if rank <= latest {
                if element.is_critical() {
                    return Err(Error::Critical);
                }
                continue;
            }
            latest = rank;
            match element.kind {
                kind::META_INFO => read.meta_info(element.value)?,
                kind::CONTENT => read.content = element.value,
                _ => signature_elements += 1,
            }
        }
        if signature_elements == 2 { Ok(read) } else { Err(Error::NoSignature) }
    }

    fn meta_info(&mut self, value: &[u8]) -> Result<(), Error> {
        let mut latest = 0;
        for element in Elements::of(value) {
            let element = element?;
            match element.kind {
                kind::CONTENT_TYPE if latest < 1 => self.content_type = element.number()?,
                kind::FRESHNESS_PERIOD if latest < 2 => self.freshness_ms = element.number()?,
                kind::FINAL_BLOCK_ID if latest < 3 => {}
                _ if element.is_critical() => return Err(Error::Critical),
                _ => continue,
            }
            latest = element.kind - kind::CONTENT_TYPE + 1;
        }
        Ok(())
    }

    /// Position of the name's components in [`Data::wire`].
    #[inline]
    pub fn name_at(&self) -> usize {
        crate::packets::tlv::offset(self.wire, self.name.as_bytes())
    }

    /// The implicit digest: SHA-256 over the whole packet.
    pub fn digest(&self) -> [u8; 32] {
        Sha256::digest(self.wire).into()
    }
}

/// A Data to write, with a digest as its signature (DigestSha256).
#[derive(Clone, Copy, Debug)]
pub struct NewData<'a> {
    /// The name.
    pub name: Name<'a>,
    /// Freshness period in milliseconds; `None`: never fresh.
    pub freshness_ms: Option<u64>,
    /// The content.
    pub content: &'a [u8],
}

impl NewData<'_> {
    /// Appends the packet to `out`.
    pub fn write(&self, out: &mut Vec<u8>) {
        const SIGNATURE_INFO: [u8; 5] = [0x16, 3, 0x1b, 1, 0];
        const SIGNATURE_LEN: usize = 34;
        let name = self.name.as_bytes();
        let meta = self.freshness_ms.map(|ms| 2 + value_len(ms));
        let signed = element_len(kind::NAME, name.len())
            + meta.map_or(0, |len| element_len(kind::META_INFO, len))
            + element_len(kind::CONTENT, self.content.len())
            + SIGNATURE_INFO.len();
        put_head(out, kind::DATA, signed + SIGNATURE_LEN);
        let start = out.len();
        put(out, kind::NAME, name);
        if let (Some(ms), Some(len)) = (self.freshness_ms, meta) {
            put_head(out, kind::META_INFO, len);
            put_value(out, kind::FRESHNESS_PERIOD, ms);
        }
        put(out, kind::CONTENT, self.content);
        out.extend_from_slice(&SIGNATURE_INFO);
        let digest: [u8; 32] = Sha256::digest(&out[start..]).into();
        put(out, kind::SIGNATURE_VALUE, &digest);
    }
}
