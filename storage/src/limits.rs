//! Every number that bounds storage, with its unit in its name.

/// A segment is sealed and the next begun once it holds this many bytes.
pub const SEGMENT_BYTES: u64 = 64 * 1024 * 1024;
/// With durability by interval, the longest time between two syncs that can be asked for.
pub const SYNC_INTERVAL_MILLIS_MAX: u64 = 60_000;
/// What found no room on the disk is tried again this often.
pub const FULL_RETRY_MILLIS: u64 = 500;
/// Unawaited events wait for company at most this long before a commit.
pub const COMMIT_WINDOW_MILLIS: u64 = 5;
/// Unawaited events are committed at once when this many wait.
pub const COMMIT_WINDOW_EVENTS: usize = 256;
/// Unawaited events are committed at once when this many bytes wait.
pub const COMMIT_WINDOW_BYTES: usize = 1024 * 1024;
/// The high-water mark is synced within this time after a commit.
pub const MARK_SYNC_MILLIS: u64 = 20;
/// A block takes no further event once it holds this many bytes before compression: small enough that
/// reading one event costs little, large enough to compress well.
pub const BLOCK_BYTES_TARGET: usize = 128 * 1024;
/// One block holds at most this many bytes of events before compression.
pub const BLOCK_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Bytes of the chain's trail kept for whoever follows it; beyond, it must be read from the log again.
pub const TRAIL_UNCLAIMED_BYTES_MAX: usize = 1024 * 1024;
/// Segments are numbered up to this; the log then ends. At 64 MiB each that is 64 TiB.
pub const SEGMENT_NUMBER_MAX: u32 = (1 << 20) - 1;
/// A segment is written anew at most this often.
pub const GENERATION_MAX: u16 = (1 << 12) - 2;
/// A segment written anew holds its events in groups of this many bytes before compression.
pub const REWRITE_GROUP_BYTES: usize = 1024 * 1024;
/// Compression of segments written anew, which nobody waits for.
pub const SEALED_COMPRESSION_LEVEL: i32 = 6;
/// One event's encoded body is at most this long; producers cut text long before.
pub const EVENT_BYTES_MAX: usize = 1024 * 1024;
/// Bytes that may wait in the writer's queue; beyond it, producers wait or shed with a `gap` event.
pub const QUEUE_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Text of one field of an event, in bytes; the whole is kept as an artifact where policy allows.
pub const TEXT_FIELD_BYTES_MAX: usize = 16 * 1024;
/// No log comes as far as this number: one at or beyond it is damage, and sums of such numbers hold.
pub const SEQ_MAX: u64 = 1 << 60;
/// A checkpoint is signed after this many events,
pub const CHECKPOINT_EVENTS: u64 = 10_000;
/// or this long after the one before, when anything happened,
pub const CHECKPOINT_SECONDS: u64 = 60;
/// or when nothing happened for this long,
pub const CHECKPOINT_IDLE_SECONDS: u64 = 3600;
/// but never sooner after one another than this.
pub const CHECKPOINT_APART_MILLIS: u64 = 1000;
/// An audit directory that cannot be used is tried again at the latest after this long.
pub const CHECKPOINT_RETRY_SECONDS_MAX: u64 = 60;
/// A log that was sealed this long ago at most may still get its last checkpoint from the server that ends.
pub const CLOSING_CHECKPOINT_MILLIS: u64 = 2_000;
/// A file of checkpoints with a line longer than this is read no further.
pub const CHECKPOINT_LINE_BYTES_MAX: usize = 1024 * 1024;
/// One artifact.
pub const ARTIFACT_BYTES_MAX: u64 = 1024 * 1024 * 1024;
/// A segment is sealed once its first event is this old, full or not, so that what has had its time
/// goes a day late at most.
pub const SEGMENT_AGE_SECONDS_MAX: u64 = 86_400;
/// The log is looked over for what can go or be compressed at least this often.
pub const UPKEEP_PERIOD_SECONDS: u64 = 600;
/// A file in the artifact store that no event names is removed at start when it is older than this.
pub const ARTIFACT_ORPHAN_SECONDS: u64 = 3_600;
/// Files that an erasure lists as out of its reach.
pub const ERASURE_PATHS_MAX: usize = 1_000;
/// Content put in the artifact store counts as needed for this long, whether or not an event names it
/// already.
pub const ARTIFACT_PIN_SECONDS: u64 = 600;
/// Watermarks are percentages of the file system, of which no more than this is reckoned with: a
/// few percent of a large disk are far more than everything that is under way.
pub const DISK_RECKONED_BYTES_MAX: u64 = 20 * 1024 * 1024 * 1024;
/// A level of the disk is left only when this much more is free than it took to come into it.
pub const DISK_MARGIN_PERCENT: u64 = 1;
/// Room kept in hand for an orderly end on a full disk.
pub const BALLAST_BYTES_DEFAULT: u64 = 16 * 1024 * 1024;
/// No more of the file system than this is kept in hand.
pub const BALLAST_SHARE_PERCENT_MAX: u64 = 5;
/// One page of any evidence list.
pub const PAGE_LIMIT_MAX: usize = 500;
/// One page of any evidence list when the caller names no limit.
pub const PAGE_LIMIT_DEFAULT: usize = 100;

const _: () = assert!(COMMIT_WINDOW_BYTES <= BLOCK_BYTES_MAX);
const _: () = assert!(EVENT_BYTES_MAX + BLOCK_BYTES_TARGET < BLOCK_BYTES_MAX);
const _: () = assert!(TEXT_FIELD_BYTES_MAX < EVENT_BYTES_MAX);
const _: () = assert!((BLOCK_BYTES_MAX as u64) < SEGMENT_BYTES);
