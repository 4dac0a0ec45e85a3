//! Keys of a build without the feature `signatures`: none can be created.

use std::convert::Infallible;

use super::signed::{KeyError, SignatureType, Signed};
use crate::packets::{Name, NameBuf};

/// A key that verifies signatures of one type.
#[derive(Clone, Debug)]
pub struct VerifyingKey(Infallible);

#[allow(missing_docs, reason = "the methods are documented in key.rs")]
impl VerifyingKey {
    pub fn digest() -> Result<Self, KeyError> {
        Err(KeyError::Unsupported)
    }

    pub fn hmac(_: &[u8]) -> Result<Self, KeyError> {
        Err(KeyError::Unsupported)
    }

    pub fn from_spki(_: &[u8]) -> Result<Self, KeyError> {
        Err(KeyError::Unsupported)
    }

    pub fn signature_type(&self) -> SignatureType {
        match self.0 {}
    }

    pub fn verifies(&self, _: &Signed<'_>) -> bool {
        match self.0 {}
    }
}

/// A key that creates signatures.
#[derive(Debug)]
pub struct Signer(Infallible);

#[allow(missing_docs, reason = "the methods are documented in key.rs")]
impl Signer {
    pub fn hmac(_: &[u8], _: NameBuf) -> Result<Self, KeyError> {
        Err(KeyError::Unsupported)
    }

    pub fn from_der(_: &[u8], _: NameBuf) -> Result<Self, KeyError> {
        Err(KeyError::Unsupported)
    }

    pub fn generate(_: SignatureType) -> Result<Vec<u8>, KeyError> {
        Err(KeyError::Unsupported)
    }

    pub fn signature_type(&self) -> SignatureType {
        match self.0 {}
    }

    pub fn locator(&self) -> Name<'_> {
        match self.0 {}
    }

    pub fn public(&self) -> Option<Vec<u8>> {
        match self.0 {}
    }

    pub(crate) fn sign(&self, _: &[&[u8]]) -> Result<Vec<u8>, KeyError> {
        match self.0 {}
    }
}
