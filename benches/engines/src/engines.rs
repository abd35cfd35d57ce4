//! The engines, each behind the same two calls: commit a batch and close.
//!
//! What must stay true: a commit returns only when the engine says that the batch is safe, by the
//! strictest means that its documentation names for that, and each gets the same records in the same order.

use std::error::Error;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use storage::event::Draft;
use storage::event::codec::put_record;
use storage::log::{Log, LogOptions};

pub type Outcome<T> = Result<T, Box<dyn Error>>;

/// What one commit writes: the same events for all.
#[derive(Clone)]
pub struct Batch {
    pub drafts: Vec<Draft>,
    /// Number and canonical record of each.
    pub records: Vec<(u64, Vec<u8>)>,
}

impl Batch {
    pub fn new(drafts: Vec<Draft>, first_seq: u64) -> Self {
        let mut records = Vec::with_capacity(drafts.len());
        for (seq, draft) in (first_seq..).zip(&drafts) {
            let mut record = Vec::new();
            put_record(&mut record, seq, 1_793_491_200_000_000 + seq as i64 * 400, &draft.body);
            records.push((seq, record));
        }
        Self { drafts, records }
    }
}

pub trait Engine {
    fn commit(&mut self, batch: Batch) -> Outcome<()>;
    /// Ends in the engine's own orderly way.
    fn close(self: Box<Self>) -> Outcome<()>;
}

pub struct Facts {
    pub name: &'static str,
    /// What an acknowledged commit has been through.
    pub acknowledged: &'static str,
    pub open: fn(&Path) -> Outcome<Box<dyn Engine>>,
}

pub const ENGINES: [Facts; 7] = [
    Facts {
        name: "bare write + fdatasync",
        acknowledged: "fdatasync of the file, whose room was laid out before",
        open: Bare::open,
    },
    Facts { name: "pageledger log", acknowledged: "fdatasync of the segment, then the mark", open: Ours::open },
    Facts {
        name: "sled 0.34.7 flush",
        acknowledged: "sync_file_range: nothing after a power cut",
        open: Sled::flushed,
    },
    Facts {
        name: "sled 0.34.7 flush + fdatasync",
        acknowledged: "flush, then our fdatasync of its file",
        open: Sled::synced,
    },
    Facts { name: "SQLite WAL, FULL", acknowledged: "fsync of the WAL", open: Sqlite::open },
    Facts { name: "redb 4.6", acknowledged: "fdatasync of the file (Immediate)", open: Redb::open },
    Facts { name: "fjall 3.1", acknowledged: "fdatasync of the journal (SyncData)", open: Fjall::open },
];

/// The floor: the records one behind the other in a file.
struct Bare {
    file: File,
    end: u64,
    laid_out: u64,
}

/// Room is laid out by this much at a time, as the log does.
const ROOM_BYTES: u64 = 64 * 1024 * 1024;

impl Bare {
    fn open(directory: &Path) -> Outcome<Box<dyn Engine>> {
        let file = File::create_new(directory.join("plain"))?;
        let mut bare = Self { file, end: 0, laid_out: 0 };
        bare.lay_out()?;
        Ok(Box::new(bare))
    }

    fn lay_out(&mut self) -> Outcome<()> {
        self.file.write_all_at(&vec![0; ROOM_BYTES as usize], self.laid_out)?;
        self.laid_out += ROOM_BYTES;
        Ok(self.file.sync_all()?)
    }
}

impl Engine for Bare {
    fn commit(&mut self, batch: Batch) -> Outcome<()> {
        let bytes: Vec<u8> = batch.records.iter().flat_map(|(_, record)| record.iter().copied()).collect();
        if self.end + bytes.len() as u64 > self.laid_out {
            self.lay_out()?;
        }
        self.file.write_all_at(&bytes, self.end)?;
        self.end += bytes.len() as u64;
        Ok(self.file.sync_data()?)
    }

    fn close(self: Box<Self>) -> Outcome<()> {
        self.file.set_len(self.end)?;
        Ok(self.file.sync_all()?)
    }
}

struct Ours {
    log: Log,
    runtime: tokio::runtime::Runtime,
}

impl Ours {
    fn open(directory: &Path) -> Outcome<Box<dyn Engine>> {
        let runtime = tokio::runtime::Builder::new_current_thread().build()?;
        Ok(Box::new(Self { log: Log::open(LogOptions::new(directory))?, runtime }))
    }
}

impl Engine for Ours {
    fn commit(&mut self, batch: Batch) -> Outcome<()> {
        self.runtime.block_on(self.log.commit(batch.drafts))?;
        Ok(())
    }

    fn close(self: Box<Self>) -> Outcome<()> {
        Ok(self.runtime.block_on(self.log.close())?)
    }
}

struct Sled {
    database: sled::Db,
    /// Synced after each flush when there is one.
    file: Option<File>,
}

impl Sled {
    fn flushed(directory: &Path) -> Outcome<Box<dyn Engine>> {
        let database = sled::Config::new().path(directory).flush_every_ms(None).open()?;
        Ok(Box::new(Self { database, file: None }))
    }

    fn synced(directory: &Path) -> Outcome<Box<dyn Engine>> {
        let database = sled::Config::new().path(directory).flush_every_ms(None).open()?;
        let file = Some(File::open(directory.join("db"))?);
        Ok(Box::new(Self { database, file }))
    }
}

impl Engine for Sled {
    fn commit(&mut self, batch: Batch) -> Outcome<()> {
        let mut writes = sled::Batch::default();
        for (seq, record) in &batch.records {
            writes.insert(&seq.to_be_bytes(), record.as_slice());
        }
        self.database.apply_batch(writes)?;
        self.database.flush()?;
        self.file.as_ref().map_or(Ok(()), File::sync_data)?;
        Ok(())
    }

    fn close(self: Box<Self>) -> Outcome<()> {
        self.database.flush()?;
        Ok(())
    }
}

struct Sqlite(rusqlite::Connection);

impl Sqlite {
    fn open(directory: &Path) -> Outcome<Box<dyn Engine>> {
        let connection = rusqlite::Connection::open(directory.join("events.db"))?;
        connection.execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
             CREATE TABLE events (seq INTEGER PRIMARY KEY, record BLOB NOT NULL);",
        )?;
        Ok(Box::new(Self(connection)))
    }
}

impl Engine for Sqlite {
    fn commit(&mut self, batch: Batch) -> Outcome<()> {
        let transaction = self.0.transaction()?;
        {
            let mut insert = transaction.prepare_cached("INSERT INTO events VALUES (?1, ?2)")?;
            for (seq, record) in &batch.records {
                insert.execute((i64::try_from(*seq)?, record))?;
            }
        }
        Ok(transaction.commit()?)
    }

    fn close(self: Box<Self>) -> Outcome<()> {
        self.0.close().map_err(|(_, error)| error.into())
    }
}

struct Redb(redb::Database);

const TABLE: redb::TableDefinition<u64, &[u8]> = redb::TableDefinition::new("events");

impl Redb {
    fn open(directory: &Path) -> Outcome<Box<dyn Engine>> {
        Ok(Box::new(Self(redb::Database::create(directory.join("events.redb"))?)))
    }
}

impl Engine for Redb {
    fn commit(&mut self, batch: Batch) -> Outcome<()> {
        let mut transaction = self.0.begin_write()?;
        transaction.set_durability(redb::Durability::Immediate)?;
        {
            let mut table = transaction.open_table(TABLE)?;
            for (seq, record) in &batch.records {
                table.insert(seq, record.as_slice())?;
            }
        }
        Ok(transaction.commit()?)
    }

    fn close(self: Box<Self>) -> Outcome<()> {
        Ok(())
    }
}

struct Fjall {
    database: fjall::Database,
    events: fjall::Keyspace,
}

impl Fjall {
    fn open(directory: &Path) -> Outcome<Box<dyn Engine>> {
        let database = fjall::Database::builder(directory).open()?;
        let events = database.keyspace("events", fjall::KeyspaceCreateOptions::default)?;
        Ok(Box::new(Self { database, events }))
    }
}

impl Engine for Fjall {
    fn commit(&mut self, batch: Batch) -> Outcome<()> {
        let mut writes = self.database.batch().durability(Some(fjall::PersistMode::SyncData));
        for (seq, record) in &batch.records {
            writes.insert(&self.events, seq.to_be_bytes(), record.as_slice());
        }
        Ok(writes.commit()?)
    }

    fn close(self: Box<Self>) -> Outcome<()> {
        Ok(self.database.persist(fjall::PersistMode::SyncAll)?)
    }
}

/// What the files below `directory` occupy.
pub fn disk_bytes(directory: &Path) -> Outcome<u64> {
    use std::os::unix::fs::MetadataExt;
    let mut directories: Vec<PathBuf> = vec![directory.to_owned()];
    let mut bytes = 0;
    while let Some(next) = directories.pop() {
        for entry in std::fs::read_dir(next)? {
            let entry = entry?;
            let metadata = entry.metadata()?;
            if metadata.is_dir() {
                directories.push(entry.path());
            } else {
                bytes += metadata.blocks() * 512;
            }
        }
    }
    Ok(bytes)
}
