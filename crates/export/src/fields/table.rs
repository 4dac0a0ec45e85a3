//! The macro that makes fields of the rows of the table.

use super::field::Field;
use super::value::Value;
use super::view::View;

/// A row of the table.
pub(crate) trait Row {
    /// What the row says besides the value.
    const FIELD: Field;

    /// The number of the row.
    const POSITION: usize;

    /// The value in this direction, whether the record has the field or not.
    fn value<'a>(view: &View<'a>, direction: usize) -> Option<Value<'a>>;

    /// The value in a record, if it has one.
    #[inline(always)]
    fn of<'a>(view: &View<'a>) -> Option<Value<'a>> {
        let Field { presence, side, .. } = Self::FIELD;
        if presence.holds(view, side) { Self::value(view, side) } else { None }
    }
}

/// Visits rows.
pub(crate) trait Visit {
    /// Visits a row.
    fn row<R: Row>(&mut self);
}

/// Maps the number of a row to its type.
pub(super) struct Numbered<const POSITION: usize>;

/// The type of a row.
pub(super) trait Numbers {
    type Row: Row;
}

/// Defines a type for each row, the table [`FIELDS`], and the orders of its rows.
macro_rules! fields {
    (
        |$v:ident, $d:ident|
        $($(#[doc = $text:literal])? $edition:literal $name:ident [$($element:tt)*] $presence:ident $type:ident = $value:expr;)+
        facts {
            $(#[doc = $fact_text:literal] $($fact_edition:literal)? $fact:ident $kind:ident [$($fact_element:tt)*] $of:ident;)+
        }
        $($(#[doc = $more_text:literal])? $more_edition:literal $more:ident [$($more_element:tt)*] $more_presence:ident $more_type:ident = $more_value:expr;)+
    ) => {
        /// The numbers of rows.
        #[expect(non_camel_case_types, reason = "the names of the fields")]
        enum Position { $($name,)+ $($fact,)+ $($more,)+ }

        $(row! {
            $name, field!($edition $name [$($element)*] $presence $type $($text)?), |$v, $d| $value
        })+
        $(row! {
            $fact,
            Field::of_fact(
                Kind::$kind,
                field!((edition!($($fact_edition)?)) $fact [$($fact_element)*] $of Text $fact_text)
            ),
            |$v, $d| $v.fact(Kind::$kind)
        })+
        $(row! {
            $more, field!($more_edition $more [$($more_element)*] $more_presence $more_type $($more_text)?),
            |$v, $d| $more_value
        })+

        fields! { @orders $($name)+ $($fact)+ $($more)+ }
    };
    (@orders $($name:ident)+) => {
        /// Number of fields.
        pub(crate) const COUNT: usize = [$(stringify!($name)),+].len();

        /// All fields, in the order of the table.
        pub(crate) static FIELDS: [Field; COUNT] = [$($name::FIELD),+];

        /// The value of each field in a record, if it has one.
        pub(crate) static READS: [for<'a> fn(&View<'a>) -> Option<Value<'a>>; COUNT] =
            [$(<$name as Row>::of),+];

        /// Visits all rows in the order of the table.
        #[inline(always)]
        pub(crate) fn visit(visit: &mut impl Visit) {
            $(visit.row::<$name>();)+
        }

        /// Visits the rows that are columns, in their order.
        #[inline(always)]
        pub(crate) fn visit_columns(visit: &mut impl Visit) {
            $(visit.row::<<Numbered<{ COLUMNS[Position::$name as usize] }> as Numbers>::Row>();)+
        }

        $(impl Numbers for Numbered<{ Position::$name as usize }> {
            type Row = $name;
        })+
    };
}

/// The type of a row.
macro_rules! row {
    ($name:ident, $field:expr, |$v:ident, $d:ident| $value:expr) => {
        /// A field of flow records.
        #[expect(non_camel_case_types, reason = "the name of the field")]
        pub(crate) struct $name;

        impl Row for $name {
            const FIELD: Field = $field;
            const POSITION: usize = Position::$name as usize;

            #[inline(always)]
            fn value<'a>($v: &View<'a>, $d: usize) -> Option<Value<'a>> {
                let _ = $d;
                $value.read()
            }
        }
    };
}

/// The edition of a row of facts: the first ones have none.
macro_rules! edition {
    () => {
        5
    };
    ($edition:literal) => {
        $edition
    };
}

/// What a row says besides the value.
macro_rules! field {
    ($edition:tt $name:ident [$($element:tt)*] $presence:ident $type:ident $($text:literal)?) => {
        Field {
            name: stringify!($name),
            keys: keys!($name $($element)*),
            edition: $edition,
            side: side!($($element)*),
            elements: elements!($($element)*),
            kind: None,
            value: Type::$type,
            shape: match Presence::$presence {
                Presence::Always | Presence::Parquet => Shape::Required,
                Presence::Lists => Shape::List,
                _ => Shape::Optional,
            },
            presence: Presence::$presence,
            meaning: concat!($($text)?),
        }
    };
}

/// The names in JSON, with what surrounds them.
macro_rules! keys {
    ($name:ident $four:literal $id4:literal, $six:literal $id6:literal) => {
        keys!($name $four $six)
    };
    ($name:ident reverse $four:literal $six:literal) => {
        keys!($name $four $six)
    };
    ($name:ident $four:literal $six:literal) => {
        [concat!(",\"", $four, "\":\""), concat!(",\"", $six, "\":\"")]
    };
    ($name:ident $($element:tt)*) => { [concat!(",\"", stringify!($name), "\":\""); 2] };
}

/// The direction of a row.
#[rustfmt::skip]
macro_rules! side {
    (reverse $($key:literal)*) => { 1 };
    ($($element:tt)*) => { 0 };
}

/// The elements of a row. CERT's are those that YAF exports.
#[rustfmt::skip]
macro_rules! elements {
    ($id:literal $(: $octets:literal)?) => { &[Element::iana($id, 0 $(+ $octets)?)] };
    ($four:literal $id4:literal, $six:literal $id6:literal) => {
        &[Element::iana($id4, 0), Element::iana($id6, 0)]
    };
    ($(iana $id:literal $form:ident $(($octets:literal))?),+) => {
        &[$(Element::of_fact(0, $id, Form::$form $(($octets))?)),+]
    };
    ($(cert $id:literal $form:ident $(($octets:literal))?),+) => {
        &[$(Element::of_fact(6_871, $id, Form::$form $(($octets))?)),+]
    };
    ($($element:tt)*) => { &[] };
}
