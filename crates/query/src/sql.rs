//! Texts in SQL.

/// A text as a literal.
pub(crate) fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// Functions of filters.
pub(crate) const MACROS: &str = "\
CREATE MACRO ipv4_number(a) AS split_part(a, '.', 1)::UBIGINT * 16777216 + split_part(a, '.', 2)::UBIGINT * 65536 \
+ split_part(a, '.', 3)::UBIGINT * 256 + split_part(a, '.', 4)::UBIGINT;
CREATE MACRO ipv6_words(a) AS CASE WHEN contains(a, '.') THEN regexp_extract(a, '^(.*:)', 1) || \
format('{:x}:{:x}', ipv4_number(regexp_extract(a, '([^:]*)$', 1)) // 65536, \
ipv4_number(regexp_extract(a, '([^:]*)$', 1)) % 65536) ELSE a END;
CREATE MACRO ipv6_side(a, side) AS list_filter(string_split(split_part(a, '::', side), ':'), lambda word: word <> '');
CREATE MACRO ipv6_digits(a) AS array_to_string(list_transform(list_concat(list_concat(ipv6_side(ipv6_words(a), 1), \
list_transform(range(8 - len(ipv6_side(ipv6_words(a), 1)) - len(ipv6_side(ipv6_words(a), 2))), lambda word: '0')), \
ipv6_side(ipv6_words(a), 2)), lambda word: lpad(word, 4, '0')), '');
";
