//! Encodes rows as Parquet with flat memory.
//!
//! What must stay true: memory is bounded by the batch and by one row group, whatever the export's
//! length; the footer carries the facts needed to judge the file without its manifest. The encoder
//! has no page checksums to offer, so the hash of the whole file in the manifest stands in for them.

use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::{KeyValue, SortingColumn};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use parquet::schema::types::ColumnPath;
use storage::event::EventView;

use crate::columns::{Column, ColumnType, Common, Packing, SCHEMA_VERSION, layout, schema};
use crate::export::{ExportError, ExportOptions, FormatWriter, Sealed};
use crate::parquet::batch::Batch;
use crate::tally::Tally;
use crate::target::{Destination, Target};

/// Rows handed to the encoder at once.
const BATCH_ROWS: usize = 8_192;
/// Bytes handed to the encoder at once, so that few long events weigh no more than many short ones.
const BATCH_BYTES: usize = 8 * 1024 * 1024;
/// Rows of one row group.
const ROW_GROUP_ROWS: usize = 100_000;
/// A row group ends early when the encoder holds this many bytes.
const ROW_GROUP_BYTES: usize = 64 * 1024 * 1024;
/// Higher levels cost more time than the bytes they save are worth here.
const ZSTD_LEVEL: i32 = 1;

/// Writes row groups; see [`crate::export::Export`] for what holds for every format.
pub(crate) struct ParquetWriter {
    encoder: ArrowWriter<Target>,
    batch: Batch,
}

impl ParquetWriter {
    pub(crate) fn create(target: &Destination, options: &ExportOptions) -> Result<Self, ExportError> {
        let file = Target::create(target, options.bytes_max, options.overwrite)?;
        let properties = properties(options).map_err(table_error)?;
        let encoder = ArrowWriter::try_new(file, schema(), Some(properties)).map_err(table_error)?;
        Ok(Self { encoder, batch: Batch::new(&options.log_id) })
    }

    fn encode(&mut self) -> Result<(), ExportError> {
        if self.batch.rows() == 0 {
            return Ok(());
        }
        let rows = self.batch.take().map_err(|error| ExportError::Table(error.to_string()))?;
        self.encoder.write(&rows).map_err(|error| self.failed(error))?;
        if self.encoder.memory_size() > ROW_GROUP_BYTES {
            self.encoder.flush().map_err(|error| self.failed(error))?;
        }
        Ok(())
    }

    fn failed(&mut self, error: ParquetError) -> ExportError {
        self.encoder.inner_mut().failure().unwrap_or_else(|| table_error(error))
    }
}

impl FormatWriter for ParquetWriter {
    fn push(&mut self, event: &EventView<'_>) -> Result<bool, ExportError> {
        self.batch.push(event);
        if self.batch.rows() >= BATCH_ROWS || self.batch.bytes() >= BATCH_BYTES {
            self.encode()?;
        }
        Ok(true)
    }

    fn seal(&mut self, _options: &ExportOptions, tally: &Tally) -> Result<Sealed, ExportError> {
        self.encode()?;
        let facts = [
            ("events", tally.events),
            ("excluded", tally.excluded),
            ("first_seq", tally.first_seq),
            ("last_seq", tally.last_seq),
            ("gap_events", tally.gap_events),
            ("lost_events", tally.lost_events),
        ];
        for (name, value) in facts {
            self.encoder.append_key_value_metadata(key_value(name, value.to_string()));
        }
        let metadata = self.encoder.finish().map_err(|error| self.failed(error))?;
        let (bytes, sha256) = self.encoder.inner_mut().prepare()?;
        Ok(Sealed { bytes, sha256, row_groups: metadata.num_row_groups() as u64, unplaced: 0, details: None })
    }

    fn target(&mut self) -> &mut Target {
        self.encoder.inner_mut()
    }
}

fn key_value(name: &str, value: String) -> KeyValue {
    KeyValue::new(format!("pageledger.{name}"), value)
}

fn table_error(error: ParquetError) -> ExportError {
    ExportError::Table(error.to_string())
}

fn properties(options: &ExportOptions) -> Result<WriterProperties, ParquetError> {
    let facts = vec![
        key_value("schema_version", SCHEMA_VERSION.to_string()),
        key_value("gateway_version", options.gateway_version.clone()),
        key_value("log_id", options.log_id.clone()),
        key_value("filter", options.filter.to_string()),
    ];
    let sequence = SortingColumn { column_idx: Common::Seq as i32, descending: false, nulls_first: false };
    let mut builder = WriterProperties::builder()
        .set_created_by(format!("pageledger {}", options.gateway_version))
        .set_writer_version(WriterVersion::PARQUET_2_0)
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(ZSTD_LEVEL)?))
        .set_max_row_group_row_count(Some(ROW_GROUP_ROWS))
        .set_statistics_enabled(EnabledStatistics::Page)
        .set_sorting_columns(Some(vec![sequence]))
        .set_key_value_metadata(Some(facts));
    for column in &layout().columns {
        let path = ColumnPath::from(column.name.as_str());
        if column.packing != Packing::Dictionary {
            builder = builder.set_column_dictionary_enabled(path.clone(), false);
        }
        if let Some(encoding) = encoding(column) {
            builder = builder.set_column_encoding(path.clone(), encoding);
        }
        if column.packing == Packing::Plain && column.holds == ColumnType::Text {
            // Bounds of free text prune nothing and would repeat it in the footer.
            builder = builder.set_column_statistics_enabled(path, EnabledStatistics::None);
        }
    }
    Ok(builder.build())
}

fn encoding(column: &Column) -> Option<Encoding> {
    match (column.packing, column.holds) {
        (Packing::Delta, ColumnType::Text) => Some(Encoding::DELTA_BYTE_ARRAY),
        (Packing::Delta, _) => Some(Encoding::DELTA_BINARY_PACKED),
        (Packing::Plain, ColumnType::Text) => Some(Encoding::PLAIN),
        _ => None,
    }
}
