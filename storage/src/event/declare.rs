//! The macro behind the catalogue. One entry
//!
//! ```text
//! /// A call finished.
//! 33 "call.settled" CallSettled @ 1 Audit {
//!     /// Tool that was called.
//!     tool: Symbol [Filter, Label],
//!     /// Fault code, on failure.
//!     code: Option<Symbol> [Filter, Label],
//! }
//! ```
//!
//! becomes the struct `CallSettled`, its `Payload` implementation (fields numbered in order of
//! declaration), the variant `Kind::CallSettled`, and one row of `KINDS` with the facts about each
//! field. Tables, not behaviour: everything else reads the rows.

macro_rules! events {
    ($(
        $(#[doc = $doc:literal])+
        $number:literal $name:literal $ty:ident @ $version:literal $class:ident {
            $($(#[doc = $field_doc:literal])+ $field:ident: $field_ty:ty $([$($role:ident),+])?,)*
        }
    )*) => {
        /// Every kind of event, numbered as on disk.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u16)]
        pub enum Kind {
            $($(#[doc = $doc])+ $ty = $number,)*
        }

        /// The catalogue as data, in order of declaration.
        pub static KINDS: &[KindFacts] = &[$(
            KindFacts {
                kind: Kind::$ty,
                number: $number,
                name: $name,
                version: $version,
                class: Class::$class,
                doc: concat!($($doc),+),
                fields: &[$(
                    FieldFacts {
                        name: plain_name(stringify!($field)),
                        kind: <$field_ty as Field>::KIND,
                        optional: <$field_ty as Field>::OPTIONAL,
                        roles: &[$($(Role::$role),+)?],
                        doc: concat!($($field_doc),+),
                    },
                )*],
            },
        )*];

        /// Reads an event as its own type and writes that anew, so that a test can do so with every kind.
        #[cfg(test)]
        pub(in crate::event) fn written_anew(
            view: &EventView<'_>,
            context: &crate::event::Context,
        ) -> Result<crate::event::Draft, DecodeError> {
            match view.kind() {
                $(Some(Kind::$ty) => Ok(crate::event::Draft::new(context, &$ty::take(view)?)),)*
                None => Err(DecodeError::Kind { expected: "a known kind", found: view.kind_number }),
            }
        }

        $(
            $(#[doc = $doc])+
            #[derive(Debug, Clone, PartialEq)]
            pub struct $ty {
                $($(#[doc = $field_doc])+ pub $field: $field_ty,)*
            }

            impl Payload for $ty {
                const KIND: Kind = Kind::$ty;

                fn put(&self, out: &mut FieldWriter<'_>) {
                    let mut number = FIRST_FIELD;
                    $(
                        out.field(number, self.$field.value());
                        number += 1;
                    )*
                    let _ = number;
                }

                fn take(view: &EventView<'_>) -> Result<Self, DecodeError> {
                    view.expect(Self::KIND)?;
                    let mut fields = view.payload();
                    let mut number = FIRST_FIELD;
                    let event = Self {
                        $($field: {
                            let value = fields.advance_to(number);
                            number += 1;
                            <$field_ty as Field>::from_value(value)
                                .ok_or(DecodeError::Field { event: $name, field: plain_name(stringify!($field)) })?
                        },)*
                    };
                    let _ = (number, fields);
                    Ok(event)
                }
            }
        )*
    };
}

pub(super) use events;
