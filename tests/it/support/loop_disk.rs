//! A disk whose power can be cut: ext4 in a file, mounted through a loop device.
//!
//! What the file holds at one moment is what a disk would hold that lost its power then, with nothing
//! of what the kernel had not yet written to it. Mounting a copy replays the file system's journal as
//! the next start of a machine would.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// Times that the image is copied again because the kernel wrote to it meanwhile.
const COPIES_MAX: u32 = 50;

/// A mounted image; unmounted and removed with the value.
pub struct LoopDisk {
    image: PathBuf,
    mounted: PathBuf,
    _directory: TempDir,
}

fn run(program: &str, arguments: &[&str]) -> Result<(), String> {
    // Tools of administrators are not on everybody's path.
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
    let output = Command::new(program)
        .args(arguments)
        .env("PATH", path)
        .output()
        .map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{program}: {}", String::from_utf8_lossy(&output.stderr).trim()))
}

fn text(path: &Path) -> &str {
    path.to_str().expect("paths of tests are text")
}

impl LoopDisk {
    /// An empty file system of that size; else why there cannot be one here.
    pub fn fresh(mebibytes: u64) -> Result<Self, String> {
        let directory = Self::directory();
        let image = directory.path().join("image");
        let file = std::fs::File::create(&image).expect("an image is made");
        file.set_len(mebibytes << 20).expect("an image has its length");
        run("mkfs.ext4", &["-q", "-F", text(&image)])?;
        Self::mount(directory, image)
    }

    /// The disk as it is after a power cut at this moment. Nobody may be writing to this one: what
    /// its users did not sync may still be on its way, and a copy that the kernel wrote under is made
    /// again.
    pub fn after_power_cut(&self) -> Result<Self, String> {
        let directory = Self::directory();
        let image = directory.path().join("image");
        let device = self.device();
        for _ in 0..COPIES_MAX {
            let before = written(&device);
            run("cp", &["--sparse=always", text(&self.image), text(&image)])?;
            if written(&device) == before {
                return Self::mount(directory, image);
            }
        }
        Err(format!("the kernel keeps writing to {device}"))
    }

    fn directory() -> TempDir {
        tempfile::Builder::new().prefix("pageledger-disk-").tempdir().expect("a temporary directory")
    }

    fn mount(directory: TempDir, image: PathBuf) -> Result<Self, String> {
        let mounted = directory.path().join("mounted");
        std::fs::create_dir(&mounted).expect("a mount point is made");
        run("mount", &["-o", "loop", text(&image), text(&mounted)])?;
        Ok(Self { image, mounted, _directory: directory })
    }

    /// Whether `needle` stands anywhere on the disk, free space included.
    #[must_use]
    pub fn image_holds(&self, needle: &str) -> bool {
        let mounted = File::open(&self.mounted).expect("it is mounted");
        rustix::fs::syncfs(&mounted).expect("it can be synced");
        let (mut image, needle) = (File::open(&self.image).expect("the image is there"), needle.as_bytes());
        let (mut bytes, mut held) = (vec![0; 1 << 20], 0);
        loop {
            let count = image.read(&mut bytes[held..]).expect("it can be read");
            if count == 0 {
                return false;
            }
            let filled = held + count;
            if memchr::memmem::find(&bytes[..filled], needle).is_some() {
                return true;
            }
            // The end may be the needle's beginning.
            held = filled.min(needle.len() - 1);
            bytes.copy_within(filled - held..filled, 0);
        }
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        &self.mounted
    }

    /// The name of its loop device.
    fn device(&self) -> String {
        let mounts = std::fs::read_to_string("/proc/mounts").expect("proc(5)");
        let of_this = |line: &str| {
            let mut words = line.split(' ');
            let device = words.next()?.strip_prefix("/dev/")?.to_owned();
            (Path::new(words.next()?) == self.mounted).then_some(device)
        };
        mounts.lines().find_map(of_this).expect("it is mounted")
    }
}

impl Drop for LoopDisk {
    fn drop(&mut self) {
        // What still uses it keeps it until it ends.
        let _ = run("umount", &["--lazy", text(&self.mounted)]);
    }
}

/// How many writes the device has finished, and how many it has begun and not finished.
fn written(device: &str) -> (u64, u64) {
    let path = format!("/sys/block/{device}/stat");
    let text = std::fs::read_to_string(path).expect("the kernel counts what its devices do");
    let number = |at: usize| text.split_whitespace().nth(at).and_then(|word| word.parse().ok()).unwrap_or(0);
    (number(4), number(8))
}
