//! From the event catalogue to one wide table.
//!
//! Laws: common columns first, then one typed nullable column for each name in the catalogue, in
//! catalogue order, then `payload`, which repeats the whole payload as JSON so that nothing is lost.
//! Fields of one name and one type share a column over all kinds. A name that is taken by a common
//! column or by another type is prefixed by its kind. Columns are added, never renamed or retyped;
//! [`SCHEMA_VERSION`] is raised with every addition and a fixture holds the result.

use std::sync::{Arc, LazyLock};

use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use storage::event::catalog::NUMBER_MAX;
use storage::event::{FieldFacts, FieldKind, KINDS, Kind, KindFacts};

/// Version of the table's shape, in every file and manifest.
pub const SCHEMA_VERSION: u32 = 4;
/// Time zone of every timestamp column.
const TIME_ZONE: &str = "UTC";
/// Name of the last column.
const PAYLOAD: &str = "payload";

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnType {
    U64,
    I64,
    F64,
    Bool,
    Text,
    /// Microseconds since the epoch, UTC.
    Time,
}

impl ColumnType {
    fn of(kind: FieldKind) -> Self {
        match kind {
            FieldKind::U64 => Self::U64,
            FieldKind::I64 => Self::I64,
            FieldKind::F64 => Self::F64,
            FieldKind::Bool => Self::Bool,
            FieldKind::Symbol
            | FieldKind::Level
            | FieldKind::Id
            | FieldKind::Handle
            | FieldKind::Text
            | FieldKind::Json => Self::Text,
        }
    }

    fn arrow(self) -> DataType {
        match self {
            Self::U64 => DataType::UInt64,
            Self::I64 => DataType::Int64,
            Self::F64 => DataType::Float64,
            Self::Bool => DataType::Boolean,
            Self::Text => DataType::Utf8,
            Self::Time => DataType::Timestamp(TimeUnit::Microsecond, Some(TIME_ZONE.into())),
        }
    }
}

/// How a column is best stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packing {
    /// Few different values.
    Dictionary,
    /// Each value is near the one before.
    Delta,
    /// Many different values.
    Plain,
}

/// One column of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    pub name: String,
    pub holds: ColumnType,
    pub nullable: bool,
    pub packing: Packing,
}

/// The common columns by position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum Common {
    LogId = 0,
    Seq,
    EventId,
    RecordedAt,
    SessionId,
    InstanceId,
    Owner,
    Kind,
    Class,
    PageId,
    FrameId,
    OperationId,
    RequestId,
    BrowserTime,
}

/// In the order of [`Common`].
const COMMON: [(&str, ColumnType, bool, Packing); 14] = [
    ("log_id", ColumnType::Text, false, Packing::Dictionary),
    ("seq", ColumnType::U64, false, Packing::Delta),
    ("event_id", ColumnType::Text, false, Packing::Delta),
    ("recorded_at", ColumnType::Time, false, Packing::Delta),
    ("session_id", ColumnType::Text, true, Packing::Dictionary),
    ("instance_id", ColumnType::Text, true, Packing::Dictionary),
    ("owner", ColumnType::Text, true, Packing::Dictionary),
    ("kind", ColumnType::Text, false, Packing::Dictionary),
    ("class", ColumnType::Text, true, Packing::Dictionary),
    ("page_id", ColumnType::Text, true, Packing::Dictionary),
    ("frame_id", ColumnType::Text, true, Packing::Dictionary),
    ("operation_id", ColumnType::Text, true, Packing::Dictionary),
    ("request_id", ColumnType::Text, true, Packing::Dictionary),
    ("browser_time", ColumnType::Time, true, Packing::Delta),
];

/// Fields whose plain name is left to kinds that use it more: the number `status` belongs to HTTP.
const GIVES_WAY: [(Kind, &str); 1] = [(Kind::PageCrashed, "status")];

/// The columns, and where each field of each kind goes.
#[derive(Debug)]
pub struct Layout {
    pub columns: Vec<Column>,
    /// By number of the kind, then by position of the field: position in `columns`.
    places: Vec<Vec<usize>>,
}

impl Layout {
    /// Columns of the kind's own fields, by position of the field.
    #[must_use]
    pub fn places(&self, kind: Kind) -> &[usize] {
        self.places.get(usize::from(kind.number())).map_or(&[], Vec::as_slice)
    }

    /// Position of the `payload` column.
    #[must_use]
    pub fn payload(&self) -> usize {
        self.columns.len() - 1
    }

    fn build() -> Self {
        let mut columns: Vec<Column> = COMMON
            .iter()
            .map(|(name, holds, nullable, packing)| Column {
                name: (*name).to_owned(),
                holds: *holds,
                nullable: *nullable,
                packing: *packing,
            })
            .collect();
        let mut places = vec![Vec::new(); usize::from(NUMBER_MAX) + 1];
        for kind in KINDS {
            let of_kind = kind.fields.iter().map(|field| place(&mut columns, kind, field)).collect();
            places[usize::from(kind.number)] = of_kind;
        }
        columns.push(Column {
            name: PAYLOAD.to_owned(),
            holds: ColumnType::Text,
            nullable: false,
            packing: Packing::Plain,
        });
        Self { columns, places }
    }
}

/// Finds or adds the column of `field`.
fn place(columns: &mut Vec<Column>, kind: &KindFacts, field: &FieldFacts) -> usize {
    let holds = ColumnType::of(field.kind);
    // A Rust keyword is declared as a raw identifier; the mark is no part of the field's name.
    let plain = field.name.trim_start_matches("r#");
    let shared = columns.iter().position(|column| column.name == plain);
    let fits = match shared {
        Some(position) => position >= COMMON.len() && columns[position].holds == holds,
        None => plain != PAYLOAD && !GIVES_WAY.contains(&(kind.kind, plain)),
    };
    match (fits, shared) {
        (true, Some(position)) => return position,
        (true, None) => columns.push(typed(plain.to_owned(), field, holds)),
        (false, _) => {
            let name = format!("{}_{plain}", kind.name.replace('.', "_"));
            columns.push(typed(name, field, holds));
        }
    }
    columns.len() - 1
}

fn typed(name: String, field: &FieldFacts, holds: ColumnType) -> Column {
    let packing = match field.kind {
        FieldKind::Text | FieldKind::Json | FieldKind::F64 => Packing::Plain,
        _ => Packing::Dictionary,
    };
    Column { name, holds, nullable: true, packing }
}

static LAYOUT: LazyLock<Layout> = LazyLock::new(Layout::build);

/// The table's layout, made once.
#[must_use]
pub fn layout() -> &'static Layout {
    &LAYOUT
}

/// The table as an Arrow schema.
#[must_use]
pub fn schema() -> SchemaRef {
    let fields: Vec<Field> =
        layout().columns.iter().map(|column| Field::new(&column.name, column.holds.arrow(), column.nullable)).collect();
    Arc::new(Schema::new(fields))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::fmt::Write as _;
    use std::path::Path;

    use super::*;

    #[test]
    fn schema_is_the_one_on_file() {
        let mut text = format!("schema {SCHEMA_VERSION}\n");
        for column in &layout().columns {
            let null = if column.nullable { "null" } else { "never null" };
            writeln!(text, "{} {:?} {null} {:?}", column.name, column.holds, column.packing)
                .expect("writing to a string cannot fail");
        }
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/export/schema.txt");
        if std::env::var_os("UPDATE_FIXTURES").is_some() {
            std::fs::create_dir_all(path.parent().expect("the fixture has a directory")).expect("directory");
            std::fs::write(&path, &text).expect("the fixture can be written");
        }
        let known = std::fs::read_to_string(&path).expect("the fixture is in the repository");
        assert_eq!(known, text, "raise SCHEMA_VERSION, then run the test with UPDATE_FIXTURES=1");
    }

    /// What a query on an old file relies on holds on a new one.
    #[test]
    fn columns_of_earlier_versions_are_all_there() {
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/export");
        let now = std::fs::read_to_string(fixtures.join("schema.txt")).expect("the fixture is in the repository");
        // How a column is packed may change: no reader sees it.
        let facts = |line: &str| line.rsplit_once(' ').map_or_else(String::new, |(facts, _)| facts.to_owned());
        let now: HashSet<String> = now.lines().map(facts).collect();
        for version in 1..SCHEMA_VERSION {
            let name = format!("schema-{version}.txt");
            let then = std::fs::read_to_string(fixtures.join(&name)).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(then.starts_with(&format!("schema {version}\n")), "{name} is of that version");
            for column in then.lines().skip(1).map(facts) {
                assert!(now.contains(&column), "version {version} has the column {column}");
            }
        }
    }

    #[test]
    fn column_names_are_unique_and_plain() {
        let mut seen = HashSet::new();
        for column in &layout().columns {
            assert!(seen.insert(&column.name), "{} appears twice", column.name);
            let plain = column.name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
            assert!(plain, "{} needs quoting in SQL", column.name);
        }
    }
}
