//! Opening a log for appending, and what goes on record about it.
//!
//! What must stay true: the lock comes first and is given up last; the first events of an opening are
//! durable before anybody else can append, or, on a full disk, wait for room before anybody else does.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;

use super::chain::{Chain, Unclaimed};
use super::durability::Unsynced;
use super::encode::{Encoder, LEVEL_LIVE};
use super::mark_keeper::MarkKeeper;
use super::queue::{Queue, Request};
use super::recovery::{self, Mended, Recovered};
use super::rewrite::Rewriter;
use super::segments::SegmentSet;
use super::storage_io::{StorageIo, SystemIo};
use super::writer::{Progress, Writer};
use super::{Durability, Inner, Log, LogOptions, Reader, lock};
use crate::StorageError;
use crate::directory;
use crate::event::catalog::{LogOpened, LogRecovered};
use crate::event::{Clean, Context, Draft, Symbol};
use crate::limits::REWRITE_GROUP_BYTES;

impl Log {
    /// Opens the log, making it when there is none: takes the lock, proves that everything up to the
    /// high-water mark is there, mends what lies behind it, and records `log.opened`.
    ///
    /// # Errors
    /// `StorageError::Locked` when another process has it, `StorageError::Damaged` when it holds less
    /// than it acknowledged, and what the operating system refuses.
    pub fn open(options: LogOptions) -> Result<Log, StorageError> {
        Self::open_with(options, Arc::new(SystemIo))
    }

    pub(super) fn open_with(options: LogOptions, io: Arc<dyn StorageIo>) -> Result<Log, StorageError> {
        let directory = options.directory.clone();
        let (log, mut writer) = Self::prepare(options, io)?;
        writer.marks.start_thread()?;
        let queue = log.inner.queue.clone();
        let thread = std::thread::Builder::new()
            .name("log-writer".into())
            .spawn(move || writer.run(&queue))
            .map_err(StorageError::io("start a thread for", directory))?;
        *log.inner.writer.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread);
        Ok(log)
    }

    /// The log and the writer that serves its queue, not yet in a thread of its own: a test that must
    /// repeat exactly serves the queue itself.
    pub(super) fn prepare(options: LogOptions, io: Arc<dyn StorageIo>) -> Result<(Log, Writer), StorageError> {
        let directory = &options.directory;
        directory::make_private(directory)?;
        let lock = lock::take(directory)?;
        let now_micros = options.clock.now_micros();
        let recovered = recovery::recover(&*io, directory, options.segment_bytes, now_micros)?;
        let was_clean = recovered.was_clean();
        let opening = opening_events(&recovered, &options, now_micros);
        let log_id = String::from_utf8_lossy(&recovered.mark.log_id).into_owned();
        let (sender, durable) = watch::channel(recovered.durable);
        let segments = Arc::new(SegmentSet::new(recovered.segments));
        let unclaimed = Arc::new(Unclaimed::default());
        let progress = Arc::new(Mutex::new(Progress::default()));
        let (epoch, before_seq) = (recovered.epoch, recovered.durable.last_seq);
        let mut mark = recovered.mark;
        mark.epoch = epoch;
        let mut writer = Writer {
            io: io.clone(),
            directory: directory.clone(),
            clock: options.clock.clone(),
            log_id: mark.log_id,
            epoch,
            segment: recovered.segment,
            segments: segments.clone(),
            marks: MarkKeeper::new(mark, recovered.mark_file, recovered.mark_path),
            chain: Chain::after(recovered.durable.chain),
            unclaimed: unclaimed.clone(),
            encoder: Encoder::new(LEVEL_LIVE).map_err(StorageError::io("prepare compression for", directory))?,
            durable: sender,
            progress: progress.clone(),
            next_seq: recovered.durable.last_seq + 1,
            epoch_events: 0,
            buffer: Vec::new(),
            disk: options.disk,
            refused_bytes: None,
            durability: options.durability,
            unsynced: Unsynced::default(),
        };
        writer.marks.reopen(recovered.durable, was_clean)?;
        let reader = Reader::beside(io.clone(), directory, log_id, durable.clone(), segments.clone());
        let marks = writer.marks.sync_handle();
        let (directory, group_bytes) = (directory.clone(), REWRITE_GROUP_BYTES);
        let rewriter = Rewriter { io, directory, segments, marks, group_bytes };
        let queue = Arc::new(Queue::new(options.queue_bytes_max));
        let mut first = vec![Request::new(opening, None)];
        if let Some(path) = writer.commit(&mut first)? {
            queue.put_back(first, path);
        }
        let (thread, lock) = (Mutex::new(None), Mutex::new(Some(Arc::new(lock))));
        let inner = Inner {
            queue,
            durable,
            unclaimed,
            progress,
            reader,
            epoch,
            was_clean,
            before_seq,
            durability: options.durability,
            writer: thread,
            rewriter,
            lock,
        };
        Ok((Self { inner: Arc::new(inner) }, writer))
    }
}

/// What the record says about this opening.
fn opening_events(recovered: &Recovered, options: &LogOptions, now_micros: i64) -> Vec<Draft> {
    let context = Context::default();
    let (durability, sync_interval_ms) = match options.durability {
        Durability::Commit => ("commit", None),
        Durability::Interval { millis } => ("interval", Some(millis)),
    };
    let back_micros = u64::try_from(recovered.recorded_micros.saturating_sub(now_micros)).unwrap_or(0);
    let opened = LogOpened {
        epoch: recovered.epoch,
        clean: recovered.was_clean(),
        last_seq: recovered.durable.last_seq,
        version: options.version.clone(),
        durability: Some(Symbol::fold(durability)),
        sync_interval_ms,
        // However little it is, it is not nothing.
        clock_back_ms: Some(back_micros.div_ceil(1_000)).filter(|millis| *millis > 0),
    };
    let mut drafts = vec![Draft::new(&context, &opened)];
    for mended in &recovered.mended {
        let event = match mended {
            Mended::TornTail { bytes_cut, kept_as } => LogRecovered {
                what: Symbol::fold("torn_tail"),
                bytes_cut: Some(*bytes_cut),
                kept_as: Some(Clean::redacted(kept_as.as_str())),
                detail: None,
            },
            Mended::LeftoverRemoved { name } => LogRecovered {
                what: Symbol::fold("leftover_removed"),
                bytes_cut: None,
                kept_as: None,
                detail: Some(Clean::redacted(name.as_str())),
            },
        };
        drafts.push(Draft::new(&context, &event));
    }
    drafts
}
