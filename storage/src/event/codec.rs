//! Canonical bytes of an event: what is stored, hashed and never rewritten.
//!
//! ```text
//! record  := length:varint  seq:varint  recorded_at:zigzag-varint  body
//! body    := kind:varint  version:u8  field*          (fields in rising order of number)
//! field   := key:varint = number << 3 | wire          value
//! wire    := 0 varint u64 | 1 zigzag varint i64 | 2 f64 little-endian | 3 length + UTF-8 | 4 false | 5 true
//! ```
//!
//! Numbers 1 to 15 are the context that any event may carry; a kind's own fields start at 16. An
//! absent optional field takes no bytes. A reader that meets a kind or a field it does not know keeps
//! it as it is. The producer encodes the body; the log's writer alone adds `seq` and `recorded_at`.

use crate::event::field::ValueRef;
use crate::event::{FieldKind, Kind, Payload};
use crate::ids::{FrameId, InstanceId, OperationId, Owner, PageId, RequestId, SessionId};

/// Number of a kind's first own field.
pub const FIRST_FIELD: u32 = 16;

/// Why bytes are not an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    #[error("the record ends before its own length")]
    Truncated,
    #[error("a number in the record is longer than ten bytes")]
    Varint,
    #[error("text in the record is not UTF-8")]
    Text,
    #[error("the record holds an unknown wire type {0}")]
    Wire(u8),
    #[error("field {field} of {event} is absent or of another type")]
    Field { event: &'static str, field: &'static str },
    #[error("what a block tells of removed events contradicts itself")]
    Runs,
    #[error("expected an event of kind {expected}, found number {found}")]
    Kind { expected: &'static str, found: u16 },
}

/// What surrounds an event: whose it is and what was going on. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Context {
    pub session_id: Option<SessionId>,
    pub instance_id: Option<InstanceId>,
    pub owner: Option<Owner>,
    pub page_id: Option<PageId>,
    pub frame_id: Option<FrameId>,
    /// The tool call that was running.
    pub operation_id: Option<OperationId>,
    /// The network request or WebSocket concerned.
    pub request_id: Option<RequestId>,
    /// The browser's own timestamp, microseconds since the epoch.
    pub browser_time_micros: Option<i64>,
}

/// The context fields by number; names are those of `list_events`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum ContextField {
    SessionId = 1,
    InstanceId = 2,
    Owner = 3,
    PageId = 4,
    FrameId = 5,
    OperationId = 6,
    RequestId = 7,
    BrowserTime = 8,
}

impl ContextField {
    pub const TEXTS: [(ContextField, &'static str); 7] = [
        (ContextField::SessionId, "session_id"),
        (ContextField::InstanceId, "instance_id"),
        (ContextField::Owner, "owner"),
        (ContextField::PageId, "page_id"),
        (ContextField::FrameId, "frame_id"),
        (ContextField::OperationId, "operation_id"),
        (ContextField::RequestId, "request_id"),
    ];
}

/// An event on its way to the log: encoded, not yet numbered.
#[derive(Debug, Clone)]
pub struct Draft {
    pub kind: Kind,
    pub session_id: Option<SessionId>,
    pub body: Vec<u8>,
}

impl Draft {
    #[must_use]
    pub fn new<P: Payload>(context: &Context, payload: &P) -> Self {
        let mut body = Vec::with_capacity(192);
        let facts = P::KIND.facts();
        put_varint(&mut body, u64::from(facts.number));
        body.push(facts.version);
        let mut writer = FieldWriter { out: &mut body };
        writer.context(context);
        payload.put(&mut writer);
        Self { kind: P::KIND, session_id: context.session_id.clone(), body }
    }
}

/// Writes fields in rising order of number.
pub struct FieldWriter<'a> {
    out: &'a mut Vec<u8>,
}

impl FieldWriter<'_> {
    pub fn field(&mut self, number: u32, value: Option<ValueRef<'_>>) {
        let Some(value) = value else { return };
        let key = u64::from(number) << 3;
        match value {
            ValueRef::U64(n) => {
                put_varint(self.out, key);
                put_varint(self.out, n);
            }
            ValueRef::I64(n) => {
                put_varint(self.out, key | 1);
                put_varint(self.out, zigzag(n));
            }
            ValueRef::F64(n) => {
                put_varint(self.out, key | 2);
                self.out.extend_from_slice(&n.to_le_bytes());
            }
            ValueRef::Text(text) => {
                put_varint(self.out, key | 3);
                put_varint(self.out, text.len() as u64);
                self.out.extend_from_slice(text.as_bytes());
            }
            ValueRef::Bool(flag) => put_varint(self.out, key | if flag { 5 } else { 4 }),
        }
    }

    fn context(&mut self, context: &Context) {
        let mut text = |field: ContextField, value: Option<&str>| {
            self.field(field as u32, value.map(ValueRef::Text));
        };
        text(ContextField::SessionId, context.session_id.as_ref().map(SessionId::as_str));
        text(ContextField::InstanceId, context.instance_id.as_ref().map(InstanceId::as_str));
        text(ContextField::Owner, context.owner.as_ref().map(Owner::as_str));
        text(ContextField::PageId, context.page_id.as_ref().map(PageId::as_str));
        text(ContextField::FrameId, context.frame_id.as_ref().map(FrameId::as_str));
        text(ContextField::OperationId, context.operation_id.as_ref().map(OperationId::as_str));
        text(ContextField::RequestId, context.request_id.as_ref().map(RequestId::as_str));
        self.field(ContextField::BrowserTime as u32, context.browser_time_micros.map(ValueRef::I64));
    }
}

/// Appends the canonical record of `body` as the `seq`-th event, recorded at `recorded_at_micros`.
pub fn put_record(out: &mut Vec<u8>, seq: u64, recorded_at_micros: i64, body: &[u8]) {
    let stamp = zigzag(recorded_at_micros);
    put_varint(out, (varint_len(seq) + varint_len(stamp) + body.len()) as u64);
    put_varint(out, seq);
    put_varint(out, stamp);
    out.extend_from_slice(body);
}

/// One event read in place. Nothing but the numbers in front is decoded until asked for.
#[derive(Debug, Clone, Copy)]
pub struct EventView<'a> {
    pub seq: u64,
    pub recorded_at_micros: i64,
    pub kind_number: u16,
    pub version: u8,
    /// The canonical bytes, all of them: what the chain runs over.
    pub record: &'a [u8],
    /// `kind version field*`.
    pub body: &'a [u8],
    fields: &'a [u8],
}

impl<'a> EventView<'a> {
    /// Takes the first record off `bytes`; returns it and the rest.
    ///
    /// # Errors
    /// When `bytes` does not begin with a whole record.
    pub fn split_from(bytes: &'a [u8]) -> Result<(Self, &'a [u8]), DecodeError> {
        let mut input = bytes;
        let length = usize::try_from(take_varint(&mut input)?).map_err(|_| DecodeError::Truncated)?;
        if input.len() < length {
            return Err(DecodeError::Truncated);
        }
        let (mut inside, rest) = input.split_at(length);
        let record = &bytes[..bytes.len() - rest.len()];
        let seq = take_varint(&mut inside)?;
        let recorded_at_micros = unzigzag(take_varint(&mut inside)?);
        let body = inside;
        let kind_number = u16::try_from(take_varint(&mut inside)?).map_err(|_| DecodeError::Varint)?;
        let (&version, fields) = inside.split_first().ok_or(DecodeError::Truncated)?;
        Ok((Self { seq, recorded_at_micros, kind_number, version, record, body, fields }, rest))
    }

    /// The kind, or `None` when this build does not know it.
    #[must_use]
    pub fn kind(&self) -> Option<Kind> {
        Kind::from_number(self.kind_number)
    }

    /// All fields in order, context first. Ends early at bytes that are no field.
    #[must_use]
    pub fn fields(&self) -> Fields<'a> {
        Fields { rest: self.fields, peeked: None }
    }

    /// The kind's own fields only.
    #[must_use]
    pub fn payload(&self) -> Fields<'a> {
        let mut fields = self.fields();
        fields.skip_below(FIRST_FIELD);
        fields
    }

    #[must_use]
    pub fn context(&self, field: ContextField) -> Option<&'a str> {
        self.fields()
            .take_while(|(number, _)| *number <= field as u32)
            .find(|(number, _)| *number == field as u32)
            .and_then(|(_, value)| value.as_str())
    }

    /// The value of the kind's own field called `name`.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<ValueRef<'a>> {
        let facts = self.kind()?.facts();
        let number = FIRST_FIELD + u32::try_from(facts.fields.iter().position(|f| f.name == name)?).ok()?;
        self.payload().find(|(n, _)| *n == number).map(|(_, value)| value)
    }

    /// Handles of what is kept beside the log because of this event.
    pub fn handles(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        let fields = self.kind().map_or(&[][..], |kind| kind.facts().fields);
        let held = fields.iter().any(|field| field.kind == FieldKind::Handle);
        let payload = held.then(|| self.payload()).into_iter().flatten();
        payload.filter_map(move |(number, value)| {
            let facts = fields.get(usize::try_from(number.checked_sub(FIRST_FIELD)?).ok()?)?;
            if facts.kind == FieldKind::Handle { value.as_str() } else { None }
        })
    }

    /// A stable identity made of the log's and the event's own: `ev-<log>-<seq>`.
    #[must_use]
    pub fn event_id(&self, log_id: &str) -> String {
        format!("ev-{log_id}-{}", self.seq)
    }

    /// # Errors
    /// When the event is of another kind.
    pub fn expect(&self, kind: Kind) -> Result<(), DecodeError> {
        if self.kind_number == kind.number() {
            return Ok(());
        }
        Err(DecodeError::Kind { expected: kind.name(), found: self.kind_number })
    }
}

/// Iterator over `(number, value)`.
#[derive(Debug, Clone)]
pub struct Fields<'a> {
    rest: &'a [u8],
    peeked: Option<(u32, ValueRef<'a>)>,
}

impl<'a> Fields<'a> {
    /// The value of field `number`, skipping those before it; `None` when it is absent.
    pub fn advance_to(&mut self, number: u32) -> Option<ValueRef<'a>> {
        self.skip_below(number);
        match self.peeked {
            Some((found, value)) if found == number => {
                self.peeked = None;
                Some(value)
            }
            _ => None,
        }
    }

    fn skip_below(&mut self, number: u32) {
        loop {
            if self.peeked.is_none() {
                self.peeked = self.read();
            }
            match self.peeked {
                Some((found, _)) if found < number => self.peeked = None,
                _ => return,
            }
        }
    }

    fn read(&mut self) -> Option<(u32, ValueRef<'a>)> {
        if self.rest.is_empty() {
            return None;
        }
        match take_field(&mut self.rest) {
            Ok(field) => Some(field),
            Err(_) => {
                self.rest = &[];
                None
            }
        }
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = (u32, ValueRef<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        self.peeked.take().or_else(|| self.read())
    }
}

fn take_field<'a>(input: &mut &'a [u8]) -> Result<(u32, ValueRef<'a>), DecodeError> {
    let key = take_varint(input)?;
    let number = u32::try_from(key >> 3).map_err(|_| DecodeError::Varint)?;
    let value = match (key & 7) as u8 {
        0 => ValueRef::U64(take_varint(input)?),
        1 => ValueRef::I64(unzigzag(take_varint(input)?)),
        2 => {
            let (bytes, rest) = input.split_first_chunk::<8>().ok_or(DecodeError::Truncated)?;
            *input = rest;
            ValueRef::F64(f64::from_le_bytes(*bytes))
        }
        3 => {
            let length = usize::try_from(take_varint(input)?).map_err(|_| DecodeError::Truncated)?;
            if input.len() < length {
                return Err(DecodeError::Truncated);
            }
            let (text, rest) = input.split_at(length);
            *input = rest;
            ValueRef::Text(std::str::from_utf8(text).map_err(|_| DecodeError::Text)?)
        }
        4 => ValueRef::Bool(false),
        5 => ValueRef::Bool(true),
        wire => return Err(DecodeError::Wire(wire)),
    };
    Ok((number, value))
}

/// LEB128: seven bits a byte, low bits first.
pub fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value as u8) | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// # Errors
/// When the input ends inside the number or it is longer than ten bytes.
pub fn take_varint(input: &mut &[u8]) -> Result<u64, DecodeError> {
    let mut value = 0u64;
    for (position, byte) in input.iter().enumerate().take(10) {
        value |= u64::from(byte & 0x7f) << (7 * position);
        if byte & 0x80 == 0 {
            *input = &input[position + 1..];
            return Ok(value);
        }
    }
    Err(if input.len() < 10 { DecodeError::Truncated } else { DecodeError::Varint })
}

fn varint_len(value: u64) -> usize {
    (64 - (value | 1).leading_zeros() as usize).div_ceil(7)
}

fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

fn unzigzag(value: u64) -> i64 {
    ((value >> 1) as i64) ^ -((value & 1) as i64)
}
