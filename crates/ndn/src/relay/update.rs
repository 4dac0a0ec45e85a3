//! The command `faces/update`: link headers for local programs.
//!
//! A routing daemon must receive the number of the face over which a neighbour's packet came. With
//! the flag LocalFieldsEnabled, the relay sends it in the link header IncomingFaceId.

use crate::faces::Faces;
use crate::packets::management::{Command, ControlParameters, LOCAL_FIELDS};

use crate::forwarder::design::Access;
use crate::relay::core::Core;
use crate::relay::management::{CommandResult, Refusal, WRONG, face_of};

/// A property that this face cannot have. NFD's text.
const INVALID: Refusal = (409, "Invalid properties specified");

impl<A: Access> Core<A> {
    /// Changes the flags of a face; without a number, of the sender's.
    pub(crate) fn update_face(
        &mut self,
        faces: &mut Faces,
        from: u32,
        command: &Command<'_>,
    ) -> CommandResult {
        let parameters = command.parameters().ok_or(WRONG)?;
        let number = face_of(&parameters, from)?;
        let (flags, mask) = match (parameters.flags, parameters.mask) {
            (Some(flags), Some(mask)) => (flags, mask),
            (None, None) => (0, 0),
            _ => return Err(WRONG),
        };
        let face = faces.get(number).ok_or((404, "Specified face does not exist"))?;
        let is_unchanged = |requested: Option<u64>, now: u64| requested.is_none_or(|it| it == now);
        let persistency = face.persistence().number();
        if flags & mask & !LOCAL_FIELDS != 0
            || !is_unchanged(parameters.persistency, persistency)
            || !is_unchanged(parameters.mtu, face.mtu() as u64)
        {
            return Err(INVALID);
        }
        let enabled = flags & LOCAL_FIELDS != 0;
        let is_set = mask & LOCAL_FIELDS == 0 || faces.set_local_fields(number, enabled);
        // Disabling what a face cannot have changes nothing.
        if !is_set && enabled {
            return Err(INVALID);
        }
        let has_local_fields = faces.get(number).is_some_and(|face| face.has_local_fields());
        Ok(ControlParameters {
            face: Some(number.into()),
            persistency: Some(persistency),
            flags: Some(if has_local_fields { LOCAL_FIELDS } else { 0 }),
            ..ControlParameters::default()
        })
    }
}
