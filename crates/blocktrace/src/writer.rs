//! Writer of the trace formats that can be written.

use crate::form::Form;
use crate::own;
use crate::record::{DeviceIndex, TraceRecord, TracedOperation};
use std::collections::BTreeMap;
use std::io::{self, BufWriter, Write};

/// Maximum bytes of a request in any format, in addition to the name of its device: the issue and
/// the completion in diskperf's own format, or a line of numbers.
pub const REQUEST_BYTES_MAX: u64 = 64;
/// Maximum bytes of a trace in addition to its requests: headings and block headers.
pub const FIXED_BYTES_MAX: u64 = 1 << 20;
/// Maximum bytes of a device name that a format may repeat in the line of each request.
const REPEATED_NAME_BYTES_MAX: u64 = 255;

/// Output that accepts no more bytes than the requests account for.
struct BoundedOutput<W> {
    output: W,
    written_bytes: u64,
    allowed_bytes: u64,
}

impl<W: Write> Write for BoundedOutput<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let after = self.written_bytes.saturating_add(bytes.len() as u64);
        if after > self.allowed_bytes {
            return Err(io::Error::other(format!(
                "the requests so far may take at most {} bytes ({REQUEST_BYTES_MAX} each, plus \
                 device names), and this form needs more: choose another form, such as diskperf",
                self.allowed_bytes
            )));
        }
        let written = self.output.write(bytes)?;
        self.written_bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }
}

/// Writer of a trace.
pub struct TraceWriter<W: Write> {
    output: BufWriter<BoundedOutput<W>>,
    form: Form,
    devices: Vec<String>,
    /// Number of requests that the format cannot represent, by kind.
    left_out_counts: BTreeMap<&'static str, u64>,
    last_completed_ns: u64,
    has_header: bool,
    own_encoder: own::TraceEncoder,
    /// Map from the device indices of the records to those of diskperf's own format.
    own_devices: BTreeMap<DeviceIndex, DeviceIndex>,
}

/// Time of the MSR clock, in ticks, that stands for time zero of a trace.
const MSR_BEGIN_TICKS: u64 = 128_166_372_000_000_000;

impl<W: Write> TraceWriter<W> {
    /// Begins a trace. Returns `None` for a format that cannot be written.
    pub fn create(output: W, form: Form) -> Option<Self> {
        Form::WRITABLE.contains(&form).then(|| Self {
            output: BufWriter::new(BoundedOutput {
                output,
                written_bytes: 0,
                allowed_bytes: FIXED_BYTES_MAX,
            }),
            form,
            devices: Vec::new(),
            left_out_counts: BTreeMap::new(),
            last_completed_ns: 0,
            has_header: false,
            own_encoder: own::TraceEncoder::default(),
            own_devices: BTreeMap::new(),
        })
    }

    /// Returns the number of requests that were left out because the format cannot represent them.
    pub fn left_out_count(&self) -> u64 {
        self.left_out_counts.values().sum()
    }

    /// Returns the number of requests that were left out, by their kind in the plural, such as
    /// `flushes`.
    pub fn left_out_counts(&self) -> &BTreeMap<&'static str, u64> {
        &self.left_out_counts
    }

    /// Sets the device names, as in the trace that is converted. Devices that have a name already
    /// keep it.
    pub fn name_devices(&mut self, names: &[String]) {
        let plain = |name: &String| -> String {
            let legal = |one: char| {
                if one.is_ascii_graphic() && one != ',' {
                    one
                } else {
                    '_'
                }
            };
            name.chars().map(legal).collect()
        };
        let new = names.iter().skip(self.devices.len());
        self.devices.extend(new.map(plain));
    }

    /// Raises the limit of the output by one request.
    fn allow_request(&mut self, record: &TraceRecord) {
        let name = self.devices.get(record.device.0 as usize);
        let name_bytes = name.map_or(10, |name| name.len() as u64);
        let named_bytes = match self.form {
            // Named once, and then a number.
            Form::Diskperf if self.own_devices.contains_key(&record.device) => 0,
            Form::Diskperf => 8 + name_bytes,
            _ => name_bytes.min(REPEATED_NAME_BYTES_MAX),
        };
        let output = &mut self.output.get_mut().allowed_bytes;
        *output = output.saturating_add(REQUEST_BYTES_MAX + named_bytes);
    }

    fn device_name(&self, of: &TraceRecord) -> String {
        let name = self.devices.get(of.device.0 as usize);
        name.cloned().unwrap_or_else(|| of.device.0.to_string())
    }

    /// Writes a request. A request that the format cannot represent is left out and counted.
    ///
    /// # Errors
    ///
    /// Fails if the output fails.
    pub fn write(&mut self, record: &TraceRecord) -> io::Result<()> {
        self.allow_request(record);
        if !self.has_header {
            self.write_header(record)?;
        }
        if self.form == Form::Diskperf {
            return self.write_own(record);
        }
        let letter = match record.operation {
            TracedOperation::Read => "R",
            TracedOperation::Write => "W",
            TracedOperation::Flush | TracedOperation::Discard | TracedOperation::WriteZeroes => {
                return self.write_other(record);
            }
        };
        let device = self.device_name(record);
        let (offset, length) = (record.offset_bytes, record.length_bytes);
        let us = record.issued_ns / 1000;
        let response_ns = record.response_ns().unwrap_or(0);
        let blocks = (offset / 512, length / 512);
        let is_whole = offset.is_multiple_of(512) && length.is_multiple_of(512);
        let output = &mut self.output;
        match self.form {
            Form::FioIolog2 | Form::FioIolog3 => {
                let what = if letter == "R" { "read" } else { "write" };
                self.write_fio(record, &format!("{device} {what} {offset} {length}"))
            }
            Form::Msr => {
                let what = if letter == "R" { "Read" } else { "Write" };
                let ticks = MSR_BEGIN_TICKS + record.issued_ns / 100;
                let (host, disk) = device.rsplit_once('.').unwrap_or(("trace", &device));
                let response = response_ns / 100;
                writeln!(
                    output,
                    "{ticks},{host},{disk},{what},{offset},{length},{response}"
                )
            }
            Form::Spc if offset.is_multiple_of(512) => {
                let (s, ns) = (
                    record.issued_ns / 1_000_000_000,
                    record.issued_ns % 1_000_000_000,
                );
                writeln!(
                    output,
                    "{device},{},{length},{letter},{s}.{ns:09}",
                    blocks.0
                )
            }
            Form::Systor17 => {
                let at = format_seconds(record.issued_ns);
                let response = record.response_ns().map_or(String::new(), format_seconds);
                writeln!(
                    output,
                    "{at},{response},{letter},{device},{offset},{length}"
                )
            }
            Form::Alibaba => writeln!(output, "{device},{letter},{offset},{length},{us}"),
            Form::DiskSim if is_whole => {
                let (ms, ns) = (record.issued_ns / 1_000_000, record.issued_ns % 1_000_000);
                let flags = u8::from(letter == "R");
                writeln!(
                    output,
                    "{ms}.{ns:06} {device} {} {} {flags}",
                    blocks.0, blocks.1
                )
            }
            Form::Validate if is_whole && record.completed_ns.is_some() => {
                self.write_validate(record)
            }
            Form::Csv => writeln!(
                output,
                "{},{letter},{offset},{length},{},{device}",
                record.issued_ns,
                record
                    .response_ns()
                    .map_or(String::new(), |ns| ns.to_string())
            ),
            _ => {
                self.count_left_out(record);
                Ok(())
            }
        }
    }

    fn count_left_out(&mut self, record: &TraceRecord) {
        let is_whole = |bytes: u64| bytes.is_multiple_of(512);
        let kind = match record.operation {
            TracedOperation::Flush => "flushes",
            TracedOperation::Discard => "discards",
            TracedOperation::WriteZeroes => "writes of zeroes",
            _ if !(is_whole(record.offset_bytes) && is_whole(record.length_bytes)) => {
                "requests of partial sectors"
            }
            _ => "requests without a completion",
        };
        *self.left_out_counts.entry(kind).or_default() += 1;
    }

    fn write_header(&mut self, record: &TraceRecord) -> io::Result<()> {
        self.has_header = true;
        let device = self.device_name(record);
        match self.form {
            Form::Diskperf => self.output.write_all(&own::encode_header()),
            Form::FioIolog2 => writeln!(
                self.output,
                "fio version 2 iolog\n{device} add\n{device} open"
            ),
            Form::FioIolog3 => writeln!(
                self.output,
                "fio version 3 iolog\n0 {device} add\n0 {device} open"
            ),
            Form::Systor17 => writeln!(self.output, "Timestamp,Response,IOType,LUN,Offset,Size"),
            Form::Csv => writeln!(self.output, "time_ns,op,offset,length,response_ns,device"),
            _ => Ok(()),
        }
    }

    /// Writes a request with all its fields in diskperf's own format, followed by its completion.
    fn write_own(&mut self, record: &TraceRecord) -> io::Result<()> {
        let device = match self.own_devices.get(&record.device) {
            Some(device) => *device,
            // Only devices that have requests are named.
            None => {
                let device = self.own_encoder.add_device(&self.device_name(record));
                self.own_devices.insert(record.device, device);
                device
            }
        };
        let number = self
            .own_encoder
            .add_issue(&TraceRecord { device, ..*record });
        if let Some(at_ns) = record.completed_ns {
            self.own_encoder.add_completion(number, at_ns, record.errno);
        }
        match self.own_encoder.is_full() {
            true => self.output.write_all(self.own_encoder.take_block(0)),
            false => Ok(()),
        }
    }

    /// Writes a request that neither reads nor writes.
    fn write_other(&mut self, record: &TraceRecord) -> io::Result<()> {
        let device = self.device_name(record);
        let (offset, length) = (record.offset_bytes, record.length_bytes);
        let is_fio = matches!(self.form, Form::FioIolog2 | Form::FioIolog3);
        match record.operation {
            TracedOperation::Flush if is_fio => {
                self.write_fio(record, &format!("{device} datasync 0 0"))
            }
            TracedOperation::Discard if is_fio => {
                self.write_fio(record, &format!("{device} trim {offset} {length}"))
            }
            _ if self.form == Form::Csv => {
                let letter = match record.operation {
                    TracedOperation::Flush => "F",
                    TracedOperation::WriteZeroes => "Z",
                    _ => "D",
                };
                let response = record
                    .response_ns()
                    .map_or(String::new(), |ns| ns.to_string());
                let at = record.issued_ns;
                writeln!(
                    self.output,
                    "{at},{letter},{offset},{length},{response},{device}"
                )
            }
            _ => {
                self.count_left_out(record);
                Ok(())
            }
        }
    }

    fn write_fio(&mut self, record: &TraceRecord, what: &str) -> io::Result<()> {
        match self.form {
            Form::FioIolog3 => writeln!(self.output, "{} {what}", record.issued_ns / 1000),
            _ => writeln!(self.output, "{what}"),
        }
    }

    /// Writes a request of the `validate` format. A pause follows its request, so that the previous
    /// request's pause is written first.
    fn write_validate(&mut self, record: &TraceRecord) -> io::Result<()> {
        let completed_ns = record.completed_ns.expect("it was looked at");
        let pause_ns = record.issued_ns.saturating_sub(self.last_completed_ns);
        if self.last_completed_ns > 0 || pause_ns > 0 {
            writeln!(self.output, " {}", format_microseconds(pause_ns))?;
        }
        self.last_completed_ns = completed_ns;
        let letter = if record.operation == TracedOperation::Read {
            "R"
        } else {
            "W"
        };
        let (block, blocks) = (record.offset_bytes / 512, record.length_bytes / 512);
        let service = format_microseconds(completed_ns - record.issued_ns);
        write!(self.output, "{letter} Miss {block} {blocks} {service}")
    }

    /// Writes the rest of the trace and returns the output.
    ///
    /// # Errors
    ///
    /// Fails if the output fails.
    pub fn finish(mut self) -> io::Result<W> {
        if self.form == Form::Validate && self.last_completed_ns > 0 {
            writeln!(self.output, " 0.000")?;
        }
        if self.form == Form::Diskperf {
            if !self.has_header {
                self.output.write_all(&own::encode_header())?;
            }
            self.output
                .write_all(self.own_encoder.take_block(own::LAST_BLOCK_FLAG))?;
        }
        let output = self.output.into_inner();
        Ok(output.map_err(|error| error.into_error())?.output)
    }
}

fn format_seconds(ns: u64) -> String {
    format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
}

fn format_microseconds(ns: u64) -> String {
    format!("{}.{:03}", ns / 1000, ns % 1000)
}
