//! System users, and switching to one permanently.

use std::ffi::{CStr, CString};
use std::io;
use std::mem::MaybeUninit;
use std::ptr;

/// The longest entry of the user database, bytes.
const MOST: usize = 1 << 20;

/// A user of the system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// The name.
    pub name: CString,
    uid: libc::uid_t,
    gid: libc::gid_t,
}

impl User {
    /// The user of this name, if there is one.
    ///
    /// # Errors
    /// The user database cannot be read.
    pub fn named(name: &CStr) -> io::Result<Option<Self>> {
        // SAFETY: the name ends with 0; `look_up` gives the other arguments.
        look_up(|entry, room, len, found| unsafe {
            libc::getpwnam_r(name.as_ptr(), entry, room, len, found)
        })
    }

    /// The user whose rights the process has, if it has a name.
    ///
    /// # Errors
    /// The user database cannot be read.
    pub fn effective() -> io::Result<Option<Self>> {
        // SAFETY: the number is any; `look_up` gives the other arguments.
        look_up(|entry, room, len, found| unsafe {
            libc::getpwuid_r(libc::geteuid(), entry, room, len, found)
        })
    }

    /// The numbers of the user and of its group.
    pub fn ids(&self) -> (u32, u32) {
        (self.uid, self.gid)
    }

    /// Whether this user is root.
    pub fn is_root(&self) -> bool {
        self.uid == 0
    }

    /// Makes all threads of the process this user's, with all groups of the user.
    ///
    /// # Errors
    /// The process lacks the right.
    pub fn switch_to(&self) -> io::Result<()> {
        // SAFETY: the name ends with 0; the other arguments are numbers.
        unsafe {
            check(libc::initgroups(self.name.as_ptr(), self.gid))?;
            check(libc::setgid(self.gid))?;
            check(libc::setuid(self.uid))
        }
    }
}

/// Calls a function of the user database with an entry, room for its texts, the length of the room, and the result.
fn look_up(
    ask: impl Fn(*mut libc::passwd, *mut libc::c_char, usize, *mut *mut libc::passwd) -> libc::c_int,
) -> io::Result<Option<User>> {
    let mut entry = MaybeUninit::<libc::passwd>::uninit();
    let mut room = vec![0; 1 << 10];
    loop {
        let mut found = ptr::null_mut();
        // The entry, the room of this length and the result live through the call.
        match ask(entry.as_mut_ptr(), room.as_mut_ptr(), room.len(), &raw mut found) {
            libc::ERANGE if room.len() < MOST => room.resize(2 * room.len(), 0),
            0 | libc::ENOENT | libc::ESRCH if found.is_null() => return Ok(None),
            0 => {
                // SAFETY: the result points to the entry, which was filled; its name lives in the room, and ends with 0.
                let (entry, name) = unsafe {
                    let entry = entry.assume_init();
                    (entry, CStr::from_ptr(entry.pw_name).to_owned())
                };
                return Ok(Some(User { name, uid: entry.pw_uid, gid: entry.pw_gid }));
            }
            error => return Err(io::Error::from_raw_os_error(error)),
        }
    }
}

/// Whether the process can become root; if so, it is root afterwards.
pub fn can_become_root() -> bool {
    // SAFETY: the argument is a number.
    unsafe { libc::setuid(0) == 0 }
}

fn check(answer: libc::c_int) -> io::Result<()> {
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::User;

    #[test]
    fn root_is_known_and_others_are_not() {
        assert!(User::named(c"root").unwrap().unwrap().is_root());
        assert_eq!(User::named(c"nobody of this name").unwrap(), None);
        if let Some(own) = User::effective().unwrap() {
            assert_eq!(User::named(&own.name).unwrap(), Some(own));
        }
    }
}
