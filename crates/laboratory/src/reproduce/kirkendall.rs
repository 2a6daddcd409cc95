//! Kirkendall 1989: two megabytes, read with five call sizes through five layers of Minix on an
//! Atari ST, and once more with read-ahead in the driver.
//!
//! The document prints whole seconds and speeds computed from them. A modelled cell is right if it
//! lies within the resolution of that clock.

use super::asking::{CellValues, ModelQueries, parse_settings};
use diskperf_analysis::accuracy::{Finding, PublishedStatement};
use diskperf_battery::Program;
use diskperf_catalogue::PublishedCell;
use diskperf_models::LaboratoryError;

pub(super) const DOCUMENT_ID: &str = "kirkendall-1989";
/// Computer that Kirkendall 1989 measured, and the one of its newsflash.
const MODEL_SYSTEM: &str = "atarist-supra";
const READ_AHEAD_SYSTEM: &str = "atarist-supra:driver-read-ahead";
const READ_BYTES: u64 = 2 << 20;
const READ_KB: f64 = (READ_BYTES >> 10) as f64;
const CALL_BYTES: [u64; 5] = [512, 1024, 2048, 8192, 16_384];

/// Returns the system and the layer of seqread that a table was measured on.
fn row_of_cell(cell: &PublishedCell) -> Option<(&'static str, &'static str)> {
    match cell.table.as_str() {
        "TEST 1" => Some((MODEL_SYSTEM, "dropped")),
        "TEST 2" => Some((MODEL_SYSTEM, "null")),
        "TEST 3" => Some((MODEL_SYSTEM, "bnull")),
        "TEST 4" => Some((MODEL_SYSTEM, "device_direct")),
        "TEST 5" => Some((MODEL_SYSTEM, "device")),
        "NEWSFLASH" => Some((READ_AHEAD_SYSTEM, "device")),
        _ => None,
    }
}

fn call_bytes_of_cell(cell: &PublishedCell) -> Option<u64> {
    cell.id.as_deref()?.rsplit('/').next()?.parse().ok()
}

/// Returns the title of a cell on the accuracy card: its call size, and the printed and modelled
/// seconds.
pub(super) fn title_of_cell(cell: &PublishedCell, kb_per_s: Option<f64>) -> String {
    let size = call_bytes_of_cell(cell).unwrap_or(0);
    match (cell.seconds, kb_per_s) {
        (Some(printed), Some(rate)) => {
            let seconds = READ_KB / rate;
            format!("seqread {size}: {printed:.0} s, modelled {seconds:.1}")
        }
        // The context of UNIX Review, which names machines that are not here.
        _ => format!("seqread {size}, {}", cell.system),
    }
}

/// Models the cells that Kirkendall 1989 measured on its own computer, in KB/s.
pub(super) fn model_values(
    asking: &ModelQueries<'_>,
    cells: &[&PublishedCell],
) -> Result<CellValues, LaboratoryError> {
    let mut ids = Vec::new();
    let mut jobs = Vec::new();
    for cell in cells {
        let (Some(id), Some((target, layer)), Some(call_bytes)) =
            (&cell.id, row_of_cell(cell), call_bytes_of_cell(cell))
        else {
            continue;
        };
        ids.push(id.clone());
        jobs.push(asking.build_job(
            target,
            &[],
            build_seqread((layer, call_bytes))?,
            READ_BYTES,
        )?);
    }
    Ok(ids.into_iter().zip(asking.run_rates(&jobs)?).collect())
}

/// Returns the statements in the text of Kirkendall 1989, and its proposals that nobody measured.
pub(super) fn check_statements(
    asking: &ModelQueries<'_>,
) -> Result<Vec<PublishedStatement>, LaboratoryError> {
    Ok(vec![
        check_hardware(asking)?,
        check_cause(asking)?,
        check_proposals(asking)?,
        check_other_disk(asking)?,
        check_interleaves(asking)?,
    ])
}

fn build_seqread((layer, call_bytes): LayerAndCallBytes) -> Result<Program, LaboratoryError> {
    let mut program = Program::from_name("seqread").expect("the battery has seqread");
    for (key, value) in [("layer", layer), ("call_bytes", &call_bytes.to_string())] {
        let set = program.set_parameter(key, value);
        set.map_err(|error| LaboratoryError::Request(error.to_string()))?;
    }
    Ok(program)
}

type LayerAndCallBytes = (&'static str, u64);

const RAW_LAYER: &str = "device_direct";
const BLOCK_LAYER: &str = "device";

fn measure_rates(
    asking: &ModelQueries<'_>,
    cases: &[(Vec<(&str, &str)>, LayerAndCallBytes)],
) -> Result<Vec<f64>, LaboratoryError> {
    let mut jobs = Vec::new();
    for (own, read) in cases {
        jobs.push(asking.build_job(
            MODEL_SYSTEM,
            &parse_settings(own),
            build_seqread(*read)?,
            READ_BYTES,
        )?);
    }
    asking.run_rates(&jobs)
}

fn check_hardware(asking: &ModelQueries<'_>) -> Result<PublishedStatement, LaboratoryError> {
    let rate = measure_rates(asking, &[(vec![], (RAW_LAYER, 65_536))])?[0];
    Ok(PublishedStatement {
        document: DOCUMENT_ID.to_owned(),
        statement: "The disk hardware can transfer data at 189 kb/sec.".to_owned(),
        findings: vec![build_finding("/dev/rhd2, calls of 64 KiB", rate)],
        is_confirmed: Some((rate / 189.0 - 1.0).abs() <= 0.1),
        conclusion: "How it was measured is not said; calls of 16 KB got 186.".to_owned(),
    })
}

fn check_cause(asking: &ModelQueries<'_>) -> Result<PublishedStatement, LaboratoryError> {
    let raw = measure_rates(
        asking,
        &[(vec![], (RAW_LAYER, 1024)), (vec![], (BLOCK_LAYER, 16_384))],
    )?;
    Ok(PublishedStatement {
        document: DOCUMENT_ID.to_owned(),
        statement: "FS divides each request into 1K chunks and reads each separately: the speed is slightly lower than the 1K uncached speed, no matter how large the cached read is.".to_owned(),
        findings: vec![
            build_finding("/dev/rhd2, calls of 1 KiB", raw[0]),
            build_finding("/dev/hd2, calls of 16 KiB", raw[1]),
        ],
        is_confirmed: Some(raw[1] < raw[0] && raw[1] > 0.8 * raw[0]),
        conclusion: "Each block is a request of its own, and whatever lies between two requests costs a whole revolution.".to_owned(),
    })
}

fn check_proposals(asking: &ModelQueries<'_>) -> Result<PublishedStatement, LaboratoryError> {
    let ways: [(&str, Vec<(&str, &str)>); 6] = [
        ("as it is", vec![]),
        (
            "4 KB read ahead in the driver",
            vec![("driver.read_ahead_bytes", "4096")],
        ),
        (
            "up to 4 blocks of a call in one request",
            vec![("kernel.blocks_per_request", "4")],
        ),
        (
            "up to 16 blocks of a call in one request",
            vec![("kernel.blocks_per_request", "16")],
        ),
        (
            "3 blocks read ahead in the cache",
            vec![("kernel.read_ahead_blocks", "3")],
        ),
        (
            "15 blocks read ahead in the cache",
            vec![("kernel.read_ahead_blocks", "15")],
        ),
    ];
    let mut cases = Vec::new();
    for (_, settings) in &ways {
        cases.extend(CALL_BYTES.map(|call_bytes| (settings.clone(), (BLOCK_LAYER, call_bytes))));
    }
    let rates = measure_rates(asking, &cases)?;
    let of = |(way, call): (usize, usize)| rates[way * CALL_BYTES.len() + call];
    let mut findings = Vec::new();
    for (number, (what, _)) in ways.iter().enumerate() {
        for (call, call_bytes) in CALL_BYTES.iter().enumerate() {
            let what = format!("/dev/hd2, calls of {call_bytes}, {what}");
            findings.push(build_finding(&what, of((number, call))));
        }
    }
    let better = (0..CALL_BYTES.len()).all(|call| of((4, call)) > of((1, call)));
    Ok(PublishedStatement {
        document: DOCUMENT_ID.to_owned(),
        statement: "Reading more than one block at a time would speed up I/O tremendously; read-ahead in the cache would probably do better than in the driver. (Never measured: predictions.)".to_owned(),
        findings,
        is_confirmed: Some(better),
        conclusion: format!(
            "With 16 KB calls, 16 blocks to a request give {:.1} times the speed; the same 4 KB read ahead in the cache saves two messages and a copy for each block against the driver.",
            of((3, 4)) / of((0, 4))
        ),
    })
}

fn check_other_disk(asking: &ModelQueries<'_>) -> Result<PublishedStatement, LaboratoryError> {
    // 34 sectors of 512 bytes in each of 60 revolutions a second.
    let fast = vec![
        ("drive.spindle_rpm", "3600"),
        ("drive.sectors_per_track", "34"),
        ("drive.interleave", "1"),
        ("drive.partition_sectors", "56580"),
    ];
    let reads = [
        (RAW_LAYER, 1024),
        (RAW_LAYER, 16_384),
        (BLOCK_LAYER, 1024),
        (BLOCK_LAYER, 16_384),
    ];
    let rates = measure_rates(asking, &reads.map(|read| (fast.clone(), read)))?;
    let findings = reads.iter().zip(&rates).map(|((layer, call_bytes), rate)| {
        build_finding(
            &format!("{}, calls of {call_bytes}", layer_title(layer)),
            *rate,
        )
    });
    Ok(PublishedStatement {
        document: DOCUMENT_ID.to_owned(),
        statement: "Other brands of disks can achieve up to 1000 kb/sec on the ST. (Predictions for the same Minix.)".to_owned(),
        findings: findings.collect(),
        is_confirmed: None,
        conclusion: format!(
            "A disk five times as fast gives {:.0} KB/s through the cache: what lies between two blocks is now just more than its shorter revolution, and costs two of them.",
            rates[3]
        ),
    })
}

fn check_interleaves(asking: &ModelQueries<'_>) -> Result<PublishedStatement, LaboratoryError> {
    const INTERLEAVE_FACTORS: [&str; 6] = ["1", "2", "3", "4", "5", "6"];
    let reads = [(RAW_LAYER, 16_384), (BLOCK_LAYER, 16_384)];
    let mut cases = Vec::new();
    for factor in INTERLEAVE_FACTORS {
        cases.extend(reads.map(|read| (vec![("drive.interleave", factor)], read)));
    }
    let rates = measure_rates(asking, &cases)?;
    let mut findings = Vec::new();
    for (case, rate) in cases.iter().zip(&rates) {
        let (settings, (layer, _)) = case;
        let what = format!(
            "{}, calls of 16384, {}:1",
            layer_title(layer),
            settings[0].1
        );
        findings.push(build_finding(&what, *rate));
    }
    let cached: Vec<f64> = rates.iter().skip(1).step_by(2).copied().collect();
    let most = cached.iter().copied().fold(0.0, f64::max);
    let least = cached.iter().copied().fold(f64::INFINITY, f64::min);
    Ok(PublishedStatement {
        document: DOCUMENT_ID.to_owned(),
        statement: "The 1:2 interleave is suspected to be too tight for Minix (the letter that is answered). (Predictions.)".to_owned(),
        findings,
        is_confirmed: None,
        conclusion: format!(
            "Through the cache the factors from 1:1 to 6:1 give {least:.0} to {most:.0} KB/s: the next block comes by too early with all that a revolution has room for, and a wider interleave only makes each block take longer."
        ),
    })
}

fn layer_title(layer: &str) -> &'static str {
    if layer == RAW_LAYER {
        "/dev/rhd2"
    } else {
        "/dev/hd2"
    }
}

fn build_finding(what: &str, kb_per_s: f64) -> Finding {
    Finding::new(what, kb_per_s, "KB/s")
}
