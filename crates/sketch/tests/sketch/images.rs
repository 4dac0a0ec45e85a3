//! Invalid bytes are an error: no panic, no endless loop, no unbounded memory.

use crate::support::{Tuple, fed, tuple, zipf};
use proptest::prelude::*;
use ringtap_sketch::*;

type Read = fn(&[u8]) -> Result<Vec<u8>, ImageError>;

fn read<S: Sketch>(bytes: &[u8]) -> Result<Vec<u8>, ImageError> {
    let sketch = S::from_bytes(bytes)?;
    assert!(sketch.memory_bytes() <= bytes.len() * 16 + (1 << 20));
    Ok(sketch.to_bytes())
}

/// An image of each kind, and its reader.
fn images() -> Vec<(Vec<u8>, Read)> {
    fn image<S: Sketch<Key = Tuple>>(sketch: S) -> (Vec<u8>, Read) {
        (fed(sketch, &zipf(500, 100, 1.0, true, 1)).to_bytes(), read::<S>)
    }
    let shape = Shape::new(2, 16).unwrap();
    let mut modular = ReversibleModular::new(shape, 1);
    modular.update(&[1, 2, 3, 4], 5);
    let mut images = vec![
        image(CountMin::<Tuple, u32>::new(shape, 1)),
        image(CountMin::<Tuple, u64>::new(shape, 1)),
        image(ConservativeCountMin::<Tuple, u32>::new(shape, 1)),
        image(ConservativeCountMin::<Tuple, u64>::new(shape, 1)),
        image(CandidateCountMin::<Tuple>::new(shape, 16, 1).unwrap()),
        image(MisraGries::<Tuple>::new(24, 1).unwrap()),
        image(MvSketch::<Tuple>::new(shape, 1)),
        image(SpaceSaving::<Tuple>::new(24, 1).unwrap()),
        image(Exact::<Tuple>::new(50, 1).unwrap()),
        image(Reversible::<Tuple>::new(shape, 1)),
        (modular.to_bytes(), read::<ReversibleModular> as Read),
    ];
    images.extend(Collision::ALL.map(|rule| image(HashTable::<Tuple>::new(30, rule, 1).unwrap())));
    images
}

/// Corrects the checksum, computed as the format defines it.
fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let fold = |a: u64, b: u64| {
        let wide = u128::from(a) * u128::from(b);
        wide as u64 ^ (wide >> 64) as u64
    };
    let body = bytes.len() - 8;
    let mut sum = body as u64;
    let mut padded = bytes[..body].to_vec();
    padded.resize(body / 16 * 16 + 16, 0);
    for block in padded.chunks(16) {
        let [a, b] = [0, 8].map(|at| u64::from_le_bytes(block[at..at + 8].try_into().unwrap()));
        sum ^= fold(a ^ 0x9e37_79b9_7f4a_7c15 ^ sum.rotate_left(23), b ^ 0xd6e8_feb8_6659_fd93);
    }
    bytes[body..].copy_from_slice(&sum.to_le_bytes());
    bytes
}

#[test]
fn images_are_read_unchanged() {
    for (image, read) in images() {
        assert_eq!(read(&image).unwrap(), image);
        assert_eq!(sealed(image.clone()), image);
    }
}

#[test]
fn every_flipped_bit_and_every_truncation_is_detected() {
    for (image, read) in images() {
        for at in (0..image.len()).step_by(1 + image.len() / 700) {
            assert!(read(&image[..at]).is_err());
            let mut damaged = image.clone();
            damaged[at] ^= 1 << (at % 8);
            assert!(read(&damaged).is_err(), "byte {at} of {}", image.len());
        }
        assert!(read(&[&image[..], &[0]].concat()).is_err());
    }
}

#[test]
fn only_its_own_kind_reads_an_image() {
    let images = images();
    for (i, (image, _)) in images.iter().enumerate() {
        for (j, (_, read)) in images.iter().enumerate() {
            // The three hash tables are one kind.
            if i != j && i.min(j) < 10 {
                let error = read(image).unwrap_err();
                assert!(matches!(error, ImageError::Kind(_) | ImageError::KeyLength { .. }));
            }
        }
    }
    let image = fed(Exact::<Tuple>::new(5, 1).unwrap(), &[(tuple(1), 2)]).to_bytes();
    let other = Exact::<[u8; 4]>::from_bytes(&image).map(|_| ());
    assert_eq!(other, Err(ImageError::KeyLength { found: 13, expected: 4 }));
    assert_eq!(read::<Exact<Tuple>>(b"not a sketch at all, but long"), Err(ImageError::NotASketch));
    let mut later = image;
    later[4] = 9;
    assert_eq!(read::<Exact<Tuple>>(&later), Err(ImageError::Version(9)));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// Damage with a correct checksum: an error, or a valid sketch.
    #[test]
    fn forged_images_are_errors_or_valid(
        which in 0usize..13,
        edits in proptest::collection::vec((16usize..120, any::<u8>()), 1..6),
        cut in 0usize..200,
    ) {
        let (mut image, read) = images().swap_remove(which);
        let length = image.len();
        for (at, value) in edits {
            image[at.min(length - 9)] = value;
        }
        image.truncate((length - cut.saturating_sub(100)).max(24));
        if let Ok(again) = read(&sealed(image)) {
            prop_assert!(read(&again).is_ok());
        }
    }

    #[test]
    fn random_bytes_are_errors(bytes in proptest::collection::vec(any::<u8>(), 0..300), kind in 0u8..13) {
        let mut image = [b"RTSK\x01".as_slice(), &[kind, 13, 0], &bytes, &[0; 24]].concat();
        for (_, read) in images() {
            let _ = read(&bytes);
            image = sealed(image);
            let _ = read(&image);
        }
    }
}
