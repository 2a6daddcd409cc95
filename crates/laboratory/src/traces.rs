//! Block traces: what is in one, and one in another form.

pub(crate) mod course;
pub(crate) mod facts;

use crate::error::LaboratoryError;
use crate::output::Output;
use diskperf_analysis::trace::Trace;
use diskperf_blocktrace::transform::{Scale, Transform};
pub use diskperf_blocktrace::{Columns, Form, ReadOptions, TimeUnit};
use diskperf_blocktrace::{DeviceIndex, Reader, Record, Writer, summary::Summarizer};
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// What is asked of a trace.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    /// Its files; `-` is standard input.
    pub files: Vec<PathBuf>,
    /// How it is read.
    pub options: ReadOptions,
    /// Only what was issued from the first moment on and before the second, in nanoseconds
    /// from the beginning.
    pub window_ns: Option<(u64, u64)>,
    /// Only what was issued in the part of this number, from 1, of a trace that has parts.
    pub part: Option<usize>,
    /// Only what a device of this name was asked.
    pub device: Option<String>,
    /// Addresses are scaled to so many bytes, from as many as the trace has.
    pub scale_to_bytes: Option<u64>,
}

/// How far the files are read.
#[derive(Clone, Debug, Default)]
pub struct Far {
    /// Bytes of the files.
    pub read_bytes: Arc<AtomicU64>,
}

/// A file whose bytes are counted, and whose reading can be ended.
struct Counted {
    file: Box<dyn Read + Send>,
    far: Far,
    stop: Arc<AtomicBool>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(std::io::Error::other("ended by the user"));
        }
        let bytes = self.file.read(buffer)?;
        self.far
            .read_bytes
            .fetch_add(bytes as u64, Ordering::Relaxed);
        Ok(bytes)
    }
}

/// Bytes of all files together; nothing of what has no size.
pub fn size_bytes(files: &[PathBuf]) -> u64 {
    let sizes = files.iter().filter_map(|file| file.metadata().ok());
    sizes.map(|status| status.len()).sum()
}

/// A trace whose requests are told one by one.
struct Opened {
    reader: Reader,
    transform: Transform,
    device: Option<String>,
    part: Option<usize>,
}

impl Opened {
    fn new(asked: &Asked, far: &Far, stop: &Arc<AtomicBool>) -> Result<Self, LaboratoryError> {
        let files = asked.files.iter().map(|path| open(path, far, stop));
        let files: Result<Vec<_>, LaboratoryError> = files.collect();
        Self::of(asked, files?)
    }

    fn of(asked: &Asked, files: Vec<Named>) -> Result<Self, LaboratoryError> {
        let reader = Reader::open_all(files, &asked.options).map_err(LaboratoryError::request)?;
        Ok(Self {
            reader,
            transform: Transform {
                window_ns: asked.window_ns,
                device: None,
                round: None,
                scale: None,
            },
            device: asked.device.clone(),
            part: asked.part,
        })
    }

    /// Tells all records that are kept.
    fn each(
        &mut self,
        stop: &AtomicBool,
        mut tell: impl FnMut(&Record, &[String]) -> Result<(), LaboratoryError>,
    ) -> Result<(), LaboratoryError> {
        while let Some(record) = self.reader.next() {
            let record = record.map_err(|error| match stop.load(Ordering::Relaxed) {
                true => LaboratoryError::Interrupted,
                false => LaboratoryError::request(error),
            })?;
            if let Some(part) = self.part
                && self.reader.part_of(&record).map(|number| number + 1) != Some(part)
            {
                continue;
            }
            if let Some(name) = &self.device {
                let number = self.reader.devices().iter().position(|known| known == name);
                self.transform.device = Some(DeviceIndex(number.map_or(u32::MAX, |of| of as u32)));
            }
            let kept = self.transform.apply(record);
            if let Some(record) = kept.map_err(LaboratoryError::Request)? {
                tell(&record, self.reader.devices())?;
            }
        }
        if let Some(part) = self.part {
            self.check_part(part)?;
        }
        match &self.device {
            Some(name) if !self.reader.devices().contains(name) => {
                Err(no_device(name, &self.reader))
            }
            _ => Ok(()),
        }
    }
}

impl Opened {
    /// Of a trace that was read.
    fn check_part(&self, part: usize) -> Result<(), LaboratoryError> {
        let parts = self.reader.parts().len();
        match part {
            _ if parts == 0 => Err(LaboratoryError::Request(format!(
                "--part {part}: a trace of the form {} has no parts; --window takes a time of it",
                self.reader.form()
            ))),
            part if (1..=parts).contains(&part) => Ok(()),
            part => Err(LaboratoryError::Request(format!(
                "--part {part}: the trace has the parts 1 to {parts}"
            ))),
        }
    }
}

fn no_device(name: &str, reader: &Reader) -> LaboratoryError {
    const LISTED: usize = 20;
    let known = reader.devices();
    let listed = known[..known.len().min(LISTED)].join(", ");
    let more = if known.len() > LISTED { ", ..." } else { "" };
    LaboratoryError::Request(format!(
        "--device {name}: the trace has no such device; it has {listed}{more}"
    ))
}

/// How `-` is called.
const STANDARD_INPUT: &str = "standard input";

type Named = (String, Box<dyn Read + Send>);

fn open(path: &Path, far: &Far, stop: &Arc<AtomicBool>) -> Result<Named, LaboratoryError> {
    let refused = |reason: String| LaboratoryError::File {
        reason,
        path: path.to_owned(),
    };
    let name = path.display().to_string();
    let file: Box<dyn Read + Send> = match name.as_str() {
        "-" => Box::new(std::io::stdin()),
        _ => {
            // A pipe of the shell's is meant; one that lies about may never begin.
            let is_of_shell = path.starts_with("/dev/fd") || path.starts_with("/proc/self/fd");
            let status = path
                .metadata()
                .map_err(|error| refused(error.to_string()))?;
            if !status.is_file() && !is_of_shell {
                return Err(refused(
                    "is not a regular file, and a trace is expected here".to_owned(),
                ));
            }
            Box::new(File::open(path).map_err(|error| refused(error.to_string()))?)
        }
    };
    let name = match name.as_str() {
        "-" => STANDARD_INPUT.to_owned(),
        _ => name,
    };
    let (far, stop) = (far.clone(), Arc::clone(stop));
    Ok((name, Box::new(Counted { file, far, stop })))
}

/// What a trace holds.
///
/// # Errors
///
/// A trace that cannot be read; a device that it has not; an end that the user asked for.
pub fn summarize(
    asked: &Asked,
    far: &Far,
    stop: &Arc<AtomicBool>,
) -> Result<Trace, LaboratoryError> {
    let mut opened = Opened::new(asked, far, stop)?;
    let mut summarizer = Summarizer::default();
    opened.each(stop, |record, _| {
        summarizer.add(record);
        Ok(())
    })?;
    let reader = &opened.reader;
    Ok(Trace {
        files: asked
            .files
            .iter()
            .map(|file| match file.as_os_str() == "-" {
                true => STANDARD_INPUT.to_owned(),
                false => file.display().to_string(),
            })
            .collect(),
        form: reader.form().name(),
        part: part(asked),
        about: reader.about().to_vec(),
        parts: reader.parts(),
        notices: reader.notices(),
        summary: summarizer.finish(reader.devices()),
    })
}

/// The part that is looked at, in words.
fn part(asked: &Asked) -> Option<String> {
    let seconds = |ns: u64| ns as f64 / 1e9;
    let window = asked
        .window_ns
        .map(|(from, to)| format!("from {} to {} s", seconds(from), seconds(to)));
    let device = asked.device.as_ref().map(|name| format!("device {name}"));
    let part = asked.part.map(|part| format!("part {part}"));
    let parts: Vec<String> = part.into_iter().chain(window).chain(device).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// What became of a trace that was written in another form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Converted {
    /// Requests that were written.
    pub written: u64,
    /// Requests that the form cannot carry.
    pub left_out: u64,
}

/// Writes a trace in another form.
///
/// # Errors
///
/// As [`summarize`]; a form that cannot be written; an output that cannot be.
pub fn convert(
    asked: &Asked,
    (form, output): (Form, Output),
    far: &Far,
    stop: &Arc<AtomicBool>,
) -> Result<Converted, LaboratoryError> {
    let scale = asked
        .scale_to_bytes
        .map(|to_bytes| scale(asked, to_bytes, stop))
        .transpose()?;
    if !Form::WRITTEN.contains(&form) {
        let names = Form::WRITTEN.map(Form::name).join(", ");
        return Err(LaboratoryError::Request(format!(
            "--convert {form}: this form is read and not written; {names} are written"
        )));
    }
    let mut opened = Opened::new(asked, far, stop)?;
    opened.transform.scale = scale;
    output.write_with(|output| write(&mut opened, (form, output), stop))
}

fn write(
    opened: &mut Opened,
    (form, output): (Form, &mut dyn Write),
    stop: &AtomicBool,
) -> Result<Converted, LaboratoryError> {
    let failed = |error: std::io::Error| LaboratoryError::Work(format!("cannot write: {error}"));
    let mut writer = Writer::create(output, form).expect("a form that is written");
    let mut written = 0;
    let mut named = 0;
    opened.each(stop, |record, devices| {
        if devices.len() > named {
            writer.name_devices(devices);
            named = devices.len();
        }
        written += 1;
        writer.write(record).map_err(failed)
    })?;
    let left_out = writer.left_out();
    writer.finish().map_err(failed)?;
    Ok(Converted {
        written: written - left_out,
        left_out,
    })
}

/// From the space of addresses that the part has, which another pass finds.
fn scale(asked: &Asked, to_bytes: u64, stop: &Arc<AtomicBool>) -> Result<Scale, LaboratoryError> {
    if asked.files.iter().any(|file| file.as_os_str() == "-") {
        return Err(LaboratoryError::Request(
            "--scale-addresses reads a trace twice, and standard input can be read once: give a file".to_owned(),
        ));
    }
    let found = summarize(asked, &Far::default(), stop)?;
    Ok(Scale {
        from_bytes: found.summary.highest_bytes.max(1),
        to_bytes,
        // What is aligned to pages stays so: a drive writes parts of pages at other costs.
        align_bytes: match found.summary.aligned_4096_share >= 1.0 {
            true => 4096,
            false => 512,
        },
    })
}
