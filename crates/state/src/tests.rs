use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

static SUMS: Schema = Schema::new("sums", 2, &[Op::Add, Op::Min, Op::Max, Op::Or]);
static BAG: Schema = Schema::many("bag", 1);
static TABLES: [&Schema; 2] = [&SUMS, &BAG];

type Sums = BTreeMap<(u16, Vec<u8>), [u64; 4]>;
type Entry = (u16, Vec<u8>, [u64; 4]);

fn image(sums: &[Entry], bag: &[(u8, Vec<u8>)]) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), b"head", TABLES).unwrap();
    let mut rows = Rows::new(&SUMS);
    sums.iter().for_each(|(key, tail, numbers)| rows.push(&[&key.to_be_bytes()], numbers, tail));
    rows.write(&mut writer).unwrap();
    writer.end_table().unwrap();
    let mut rows = Rows::new(&BAG);
    bag.iter().for_each(|(key, tail)| rows.push(&[&[*key]], &[], tail));
    rows.write(&mut writer).unwrap();
    writer.finish().unwrap()
}

fn open(image: &[u8]) -> Result<Reader<&[u8]>, Error> {
    Reader::open(image, &TABLES)
}

/// The merged image.
fn merged(images: &[&[u8]]) -> Result<Vec<u8>, Error> {
    let mut images: Vec<_> = images.iter().map(|image| open(image)).collect::<Result<_, _>>()?;
    let mut writer = Writer::new(Vec::new(), b"head", TABLES)?;
    for table in 0..TABLES.len() {
        merge(&mut images, table, |_, row| writer.push(row))?;
        writer.end_table()?;
    }
    writer.finish()
}

fn entries() -> impl Strategy<Value = (Vec<Entry>, Vec<(u8, Vec<u8>)>)> {
    let tail = || prop_oneof![Just(Vec::new()), vec(any::<u8>(), 0..4)];
    let sums = vec((0..300_u16, tail(), any::<[u64; 4]>()), 0..400);
    (sums, vec((0..9_u8, tail()), 0..60))
}

proptest! {
    #[test]
    fn merging_is_commutative_associative_and_has_an_identity(parts in vec(entries(), 1..6)) {
        let images: Vec<_> = parts.iter().map(|(sums, bag)| image(sums, bag)).collect();
        let all: Vec<&[u8]> = images.iter().map(Vec::as_slice).collect();
        let whole = merged(&all).unwrap();
        let mut backwards = all.clone();
        backwards.reverse();
        prop_assert_eq!(&merged(&backwards).unwrap(), &whole);
        let (left, right) = all.split_at(all.len() / 2);
        let [left, right] = [left, right].map(|half| merged(half).unwrap());
        prop_assert_eq!(&merged(&[&right, &image(&[], &[]), &left]).unwrap(), &whole);
        // And it is the image of all rows together.
        let sums: Vec<_> = parts.iter().flat_map(|(sums, _)| sums.clone()).collect();
        let bag: Vec<_> = parts.iter().flat_map(|(_, bag)| bag.clone()).collect();
        prop_assert_eq!(&image(&sums, &bag), &whole);
        let mut expected = Sums::new();
        for (key, tail, [sum, least, most, bits]) in sums {
            let row = expected.entry((key, tail)).or_insert([0, u64::MAX, 0, 0]);
            *row = [row[0].wrapping_add(sum), row[1].min(least), row[2].max(most), row[3] | bits];
        }
        let mut found = Sums::new();
        merge(&mut [open(&whole).unwrap()], 0, |_, row| {
            let key = u16::from_be_bytes(row.key().try_into().unwrap());
            found.insert((key, row.tail.to_vec()), row.numbers());
            Ok::<_, Error>(())
        })
        .unwrap();
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn a_damaged_image_is_an_error((sums, bag) in entries(), at in any::<prop::sample::Index>(), flip in 1..=255_u8) {
        let mut image = image(&sums, &bag);
        let at = at.index(image.len());
        image[at] ^= flip;
        prop_assert!(merged(&[&image]).is_err(), "byte {at}");
    }
}

#[test]
fn large_tables_span_blocks() {
    let sums: Vec<_> = (0..20_000_u32)
        .map(|n| (n.wrapping_mul(40_503) as u16, vec![n as u8; n as usize % 3], [u64::from(n); 4]))
        .collect();
    let bag: Vec<_> = (0..10_000_u32).map(|n| (n as u8 % 5, Vec::new())).collect();
    let (one, other) = (image(&sums[..7_000], &bag[..1_000]), image(&sums[7_000..], &bag[1_000..]));
    assert_eq!(merged(&[&other, &one]).unwrap(), image(&sums, &bag));
}

#[test]
fn words_that_all_rows_of_some_blocks_have_are_read_again() {
    // Of the last number, by block: the same, different ones, the same, another, different ones.
    let last = |at: u16| match at / 1024 {
        0 | 2 => 7,
        3 => 8,
        _ => u64::from(at) << 40,
    };
    let rows: Vec<Entry> = (0..6_000).map(|at| (at, Vec::new(), [0, 1, 2, last(at)])).collect();
    for rows in [&rows[..], &rows[..3_100]] {
        let written = image(rows, &[]);
        assert_eq!(merged(&[&written]).unwrap(), written);
        let mut expected = rows.iter();
        merge(&mut [open(&written).unwrap()], 0, |_, row| {
            let (key, _, numbers) = expected.next().unwrap();
            assert_eq!((row.key(), row.numbers()), (&key.to_be_bytes()[..], *numbers));
            Ok::<_, Error>(())
        })
        .unwrap();
        assert!(expected.next().is_none());
    }
}

#[test]
fn blocks_of_few_rows_are_read_among_full_ones() {
    // Long tails end a block early; the last number changes with it.
    let row = |at: u16| {
        let is_long = (1030..1050).contains(&at);
        (at, vec![at as u8; if is_long { 100_000 } else { 3 }], [1, 1, 1, u64::from(is_long)])
    };
    let written = image(&(0..4_000).map(row).collect::<Vec<Entry>>(), &[(1, vec![5; 70_000])]);
    assert_eq!(merged(&[&written]).unwrap(), written);
}

#[test]
fn an_image_cut_anywhere_is_an_error() {
    let whole = image(&[(1, vec![2], [3; 4])], &[(4, vec![])]);
    for length in 0..whole.len() {
        assert!(merged(&[&whole[..length]]).is_err(), "{length} bytes");
    }
    assert!(merged(&[&whole]).is_ok());
}

#[test]
fn errors_say_what_is_wrong() {
    let whole = image(&[(1, vec![2], [3; 4])], &[]);
    let error = |image: &[u8]| open(image).err().unwrap().to_string();
    assert_eq!(error(b"\xd4\xc3\xb2\xa1"), "this is not a state");
    let mut later = whole.clone();
    later[12] = 9;
    let expected =
        "the state has version 9, and only versions up to 4 are known: use a later ringtap";
    assert_eq!(error(&later), expected);
    let unknown = Reader::open(&whole[..], &[&SUMS]).err().unwrap().to_string();
    assert_eq!(unknown, "the state has an unknown table \"bag\"");
}

#[test]
fn rows_out_of_order_are_an_error() {
    let mut writer = Writer::new(Vec::new(), b"", TABLES).unwrap();
    for key in [[2, 0], [1, 0]] {
        let mut rows = Rows::new(&SUMS);
        rows.push(&[&key], &[0; 4], &[]);
        rows.write(&mut writer).unwrap();
    }
    let image = writer.finish().unwrap();
    assert!(matches!(open(&image), Err(Error::Damaged("rows out of order"))));
}

proptest! {
    #[test]
    fn the_first_bytes_of_keys_are_in_the_order_of_keys(
        keys in vec((vec(0..3_u8, 46), any::<bool>()), 2..50),
        length in prop::sample::select(vec![3_usize, 16, 26, 27, 46]),
    ) {
        let key = |(mut key, gap): (Vec<u8>, bool)| {
            if gap {
                key[5..17].fill(0);
            }
            key[..4].fill(0);
            key[..length].to_vec()
        };
        let mut keys: Vec<_> = keys.into_iter().map(key).collect();
        keys.sort();
        prop_assert!(keys.iter().map(|key| prefix::prefix(key)).is_sorted());
    }
}
