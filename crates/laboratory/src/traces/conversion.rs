//! Conversion of a trace to another format, with a bound on its size.

use super::{OpenTrace, ReadProgress, TraceRequest, summarize};
use crate::output::Output;
use diskperf_blocktrace::transform::AddressScaling;
use diskperf_blocktrace::{FIXED_BYTES_MAX, Form, REQUEST_BYTES_MAX, TraceWriter};
use diskperf_models::LaboratoryError;
use diskperf_timeline::units::format_size;
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Outcome of writing a trace in another format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConversionOutcome {
    /// Number of requests that were written in the other format.
    pub written_count: u64,
    /// Number of requests that the format cannot represent, by their kind in the plural.
    pub omitted_counts: BTreeMap<&'static str, u64>,
}

/// Writes a trace in another format.
///
/// # Errors
///
/// Returns the errors of [`summarize`], and an error if the format cannot be written, or if the
/// output cannot be created or does not fit. A failed output leaves nothing behind.
pub fn convert(
    asked: &TraceRequest,
    (form, output): (Form, Output),
    far: &ReadProgress,
    stop: &Arc<AtomicBool>,
) -> Result<ConversionOutcome, LaboratoryError> {
    let scale = asked
        .scale_to_bytes
        .map(|to_bytes| build_scale(asked, to_bytes, stop))
        .transpose()?;
    if !Form::WRITABLE.contains(&form) {
        let names = Form::WRITABLE.map(Form::name).join(", ");
        return Err(LaboratoryError::Request(format!(
            "--convert {form}: this form is read and not written; {names} are written"
        )));
    }
    let conversion = TraceConversion {
        request: asked,
        form,
        scale,
        progress: far,
        stop,
    };
    conversion.check_space(&output)?;
    output.write_with(|output| conversion.write_trace(output))
}

struct TraceConversion<'a> {
    request: &'a TraceRequest,
    form: Form,
    scale: Option<AddressScaling>,
    progress: &'a ReadProgress,
    stop: &'a Arc<AtomicBool>,
}

impl TraceConversion<'_> {
    fn write_trace(&self, output: &mut dyn Write) -> Result<ConversionOutcome, LaboratoryError> {
        let failed = |error: io::Error| {
            LaboratoryError::Failure(format!("cannot write {}: {error}", self.form))
        };
        let mut opened = OpenTrace::open(self.request, self.progress, self.stop)?;
        opened.transform.address_scaling = self.scale;
        let mut writer = TraceWriter::create(output, self.form).expect("a form that is written");
        let mut written = 0;
        let mut named = 0;
        opened.for_each_request(self.stop, |record, devices| {
            if devices.len() > named {
                writer.name_devices(devices);
                named = devices.len();
            }
            written += 1;
            writer.write(record).map_err(failed)
        })?;
        opened.check_requests(self.request)?;
        let omitted_counts = writer.left_out_counts().clone();
        let left_out = writer.left_out_count();
        writer.finish().map_err(failed)?;
        Ok(ConversionOutcome {
            written_count: written - left_out,
            omitted_counts,
        })
    }

    /// Verifies that the file system has space for the converted trace. If it has space for the
    /// maximum size, the trace is not read for this.
    fn check_space(&self, output: &Output) -> Result<(), LaboratoryError> {
        let Some(available_bytes) = output.available_bytes() else {
            return Ok(());
        };
        let files = &self.request.files;
        let can_be_read_twice = files.iter().all(|path| path.is_file());
        if !can_be_read_twice || output_bytes_max(files).is_some_and(|most| most <= available_bytes)
        {
            return Ok(());
        }
        let mut counted = ByteCounter(0);
        self.write_trace(&mut counted)?;
        self.progress.read_bytes.store(0, Ordering::Relaxed);
        match counted.0 <= available_bytes {
            true => Ok(()),
            false => Err(LaboratoryError::Failure(format!(
                "the trace comes to {} as {}, and {} are free where it would be written: free some space, name another place, or take a part (--window, --device)",
                format_size(counted.0),
                self.form,
                format_size(available_bytes)
            ))),
        }
    }
}

/// Returns the maximum size of files after conversion, in bytes; `None` for compressed files.
fn output_bytes_max(files: &[std::path::PathBuf]) -> Option<u64> {
    const LINE_BYTES_MIN: u64 = 8;
    let mut most = FIXED_BYTES_MAX;
    for path in files {
        let bytes = path.metadata().ok()?.len();
        if is_compressed(path)? {
            return None;
        }
        let requests = bytes / LINE_BYTES_MIN;
        most = most.saturating_add(requests.saturating_mul(REQUEST_BYTES_MAX));
        most = most.saturating_add(bytes);
    }
    Some(most)
}

fn is_compressed(path: &Path) -> Option<bool> {
    let mut begin = Vec::new();
    let file = std::fs::File::open(path).ok()?;
    file.take(4).read_to_end(&mut begin).ok()?;
    Some(begin.starts_with(&[0x1f, 0x8b]) || begin == [0x28, 0xb5, 0x2f, 0xfd])
}

struct ByteCounter(u64);

impl Write for ByteCounter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Determines the scale of addresses from the address space of the selected part, which another
/// pass over the trace finds.
fn build_scale(
    asked: &TraceRequest,
    to_bytes: u64,
    stop: &Arc<AtomicBool>,
) -> Result<AddressScaling, LaboratoryError> {
    if asked.files.iter().any(|file| file.as_os_str() == "-") {
        return Err(LaboratoryError::Request(
            "--scale-addresses reads a trace twice, and standard input can be read once: give a file".to_owned(),
        ));
    }
    let found = summarize(asked, &ReadProgress::default(), stop)?;
    Ok(AddressScaling {
        from_bytes: found.summary.end_bytes_max.max(1),
        to_bytes,
        // What is aligned to pages stays so: a drive writes parts of pages at other costs.
        align_bytes: match found.summary.aligned_4096_share >= 1.0 {
            true => 4096,
            false => 512,
        },
    })
}
