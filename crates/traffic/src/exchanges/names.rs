//! Names of servers: a function of a number, so that a list of any length takes no memory.
//!
//! ```text
//! www.bakodi.example.org
//! │   │      └ a domain that RFC 2606 reserves
//! │   └ the number in syllables, so that names are distinct
//! └ one of some usual labels, or none
//! ```

use std::fmt;

use crate::keyed::mix;

const LABELS: [&str; 8] = ["www.", "api.", "cdn.", "static.", "mail.", "img-7.", "", "login.eu."];
const DOMAINS: [&str; 4] = ["example.com", "example.net", "example.org", "example"];
const CONSONANTS: &[u8; 16] = b"bcdfghjklmnprstv";
const VOWELS: &[u8; 4] = b"aeio";
/// A syllable has 6 bits of the number, and the longest number 21.
const SYLLABLES_MAX: u32 = 4;

/// The name with this number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Name(pub(super) u32);

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use fmt::Write;
        let bits = mix(u64::from(self.0));
        f.write_str(LABELS[(bits & 7) as usize])?;
        let mut rest = self.0;
        for syllable in 0..SYLLABLES_MAX {
            if syllable > 1 && rest == 0 {
                break;
            }
            f.write_char(char::from(CONSONANTS[(rest & 15) as usize]))?;
            f.write_char(char::from(VOWELS[(rest >> 4 & 3) as usize]))?;
            rest >>= 6;
        }
        write!(f, ".{}", DOMAINS[(bits >> 8 & 3) as usize])
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn names_are_distinct() {
        let names: HashSet<String> = (0..100_000).map(|number| Name(number).to_string()).collect();
        assert_eq!(names.len(), 100_000);
        assert!(names.iter().all(|name| name.len() < 40));
    }
}
