//! Every sentence that says what fio does, beside what fio does.

use crate::{Fio, ours};
use diskperf_fio::{FileSource, JobEnvironment, JobFile};
use serde_json::Value;
use std::path::Path;

/// What the installed fio shows of a job file.
enum Shows {
    /// It ends with an error, and this in its output.
    Refusal(&'static str),
    /// It takes the file, and this is the first value of an option in its debug output.
    Value(&'static str, i128),
    /// It takes the file.
    Taken,
    /// It runs, with as many I/Os in all.
    Ios(u64),
    /// It runs, and leaves this file.
    File(&'static str),
    /// It runs, and prints this.
    Prints(&'static str),
}

use Shows::{File, Ios, Prints, Refusal, Taken, Value as Reads};

/// Options of a job on the null engine, the sentence about them, and fio's side of it.
const CASES: &[(&str, &str, Shows)] = &[
    (
        "time_based",
        "the job ends after one pass, as fio's does",
        Ios(16),
    ),
    ("ss=iops:1%", "fio never looks", Ios(16)),
    (
        "size=12z\nfilesize=128k",
        "fio takes it for no value",
        Ios(32),
    ),
    (
        "size=12z",
        "fio takes it for no value",
        Refusal("Invalid argument"),
    ),
    (
        "io_size=8k\nio_size=3z",
        "fio takes it for no value",
        Ios(16),
    ),
    (
        "filesize=64k\noffset=32k\noffset=1z",
        "fio takes it for no value",
        Ios(16),
    ),
    (
        "offset_increment=1z\nnumjobs=2",
        "fio takes it for no value",
        Ios(32),
    ),
    ("zoneskip=2z", "fio takes it for no value", Ios(16)),
    (
        "percentile_list=50,95",
        "fio reads percentile_list=50 and says nothing",
        Reads("percentile_list", 50_000_000),
    ),
    (
        "percentile_list=50:-1:99",
        "fio reads percentile_list=50 and says nothing",
        Reads("percentile_list", 50_000_000),
    ),
    (
        "flow=-3\nflow_id=7",
        "as with fio, the jobs of this flow_id beside it starve; write weights from 1 to 1000",
        Taken,
    ),
    (
        "profile=tiobench",
        "fio too does nothing for it in a job file",
        Ios(16),
    ),
    (
        "merge_blktrace_scalars=50",
        "fio too does nothing for it without merge_blktrace_file",
        Ios(16),
    ),
    (
        "atomic=1\nioengine=psync\nbs=512\noffset=1",
        "as with fio on Linux, which opens with O_DIRECT and asks for nothing more",
        Refusal("Invalid argument"),
    ),
    (
        "percentile_list=101",
        "percentile_list is out of range",
        Refusal("failed parsing percentile_list"),
    ),
    (
        "rate=1m\nrate_iops=9",
        "fio drops the job",
        Refusal("mutually exclusive"),
    ),
    (
        "rate_min=1m\nrate_iops_min=9",
        "fio drops the job",
        Refusal("mutually exclusive"),
    ),
    (
        "zonesize=4k",
        "fio drops the job",
        Refusal("not compatible"),
    ),
    (
        "wait_for=y",
        "fio runs no job of the file",
        Refusal("unknown"),
    ),
    (
        "ss=iops:30%\nss_dur=2\n[y]",
        "fio runs no job of the file",
        Refusal("consistent within reporting groups"),
    ),
    (
        "ss_dur=2\n[y]",
        "fio runs no job of the file",
        Refusal("consistent within reporting groups"),
    ),
    (
        "ss=iops:30%\nss_dur=2\n[y]\nss=iops:9%\nss_dur=2",
        "fio runs no job of the file",
        Refusal("consistent within reporting groups"),
    ),
    (
        "ss=iops:30%\nss_dur=2\n[y]\nss=bw:30%\nss_dur=2",
        "fio runs no job of the file",
        Refusal("consistent within reporting groups"),
    ),
    (
        "ss=iops:30%\nss_dur=2\n[y]\nss=iops_slope:30%\nss_dur=2",
        "fio runs no job of the file",
        Refusal("consistent within reporting groups"),
    ),
    (
        "ss=iops:30%\nss_dur=2\n[y]\nss=iops:30%\nss_dur=3",
        "fio runs no job of the file",
        Refusal("consistent within reporting groups"),
    ),
    (
        "ss=iops:30%\nss_dur=2\n[y]\nss=iops:30%\nss_dur=2\nss_ramp=1",
        "fio runs no job of the file",
        Refusal("consistent within reporting groups"),
    ),
    (
        "ioengine=libaio\niodepth=2\nrw=write",
        "though fio reports the depth that it was asked for",
        Prints("2=93.8%"),
    ),
    ("numjobs=5000", "numjobs is from 1 to 4096", Refusal("")),
    (
        "numjobs=4000\n[y]\nnumjobs=97",
        "fio has no room for this one",
        Refusal(""),
    ),
    ("hipri=1", "fio drops the job", Refusal("Bad option")),
    (
        "iodpeth=1",
        "fio has no option `iodpeth`",
        Refusal("Bad option"),
    ),
    ("=4", "fio drops the job", Refusal("Bad option")),
    ("bs=", "fio drops the job", Refusal("failed parsing bs")),
    ("bs", "fio drops the job", Refusal("failed parsing bs")),
    (
        "bsrange=4k",
        "fio drops the job",
        Refusal("failed parsing bsrange"),
    ),
    (
        "bssplit=4k/60:8k/60:16k",
        "fio issues other shares than these, and says nothing",
        Taken,
    ),
    (
        "bssplit=4k/60:8k/60:16k:32k",
        "fio drops the job",
        Refusal("more than 100%"),
    ),
    (
        "bssplit=4k/60:8k/60",
        "the percentages of bssplit add up to 120, of which fio makes 4096 bytes 60 %, 8192 bytes 40 %",
        Taken,
    ),
    (
        "zonemode=zbd\nzonesize=16k\njob_max_open_zones=2",
        "fio takes this on a device with a limit of its own alone",
        Refusal("cannot be used without a global open zones limit"),
    ),
    (
        "rwmixread=70%",
        "fio reads 18446744073709551545 and says nothing",
        Reads("rwmixread", 18_446_744_073_709_551_545),
    ),
    (
        "ioengine=cpuio\nruntime=1\ncpuload=9\ncpuchunks=20ms",
        "fio reads 20971520 and says nothing",
        Reads("cpuchunks", 20_971_520),
    ),
    ("random_distribution=random:3", "fio ignores this", Ios(16)),
    (
        "random_distribution=zoned",
        "fio has none",
        Refusal("mismatch in zoned"),
    ),
    (
        "random_distribution=zipf:1.0",
        "fio drops the job",
        Refusal("different than 1.0"),
    ),
    (
        "random_distribution=zipf:-1",
        "fio takes it, and no block is more popular then",
        Taken,
    ),
    (
        "random_distribution=pareto:1",
        "fio drops the job",
        Refusal("out of range"),
    ),
    (
        "random_distribution=normal:100",
        "fio drops the job",
        Refusal("out of range"),
    ),
    (
        "random_distribution=zoned_abs:60/20m:40",
        "fio shares out the rest of the file",
        Taken,
    ),
    (
        "random_distribution=zoned:60/20",
        "fio drops the job",
        Refusal("add up to 100"),
    ),
    (
        "random_distribution=zoned:50/60:50/60",
        "the second numbers are shares of the file",
        Refusal("more than 100%"),
    ),
    (
        "random_distribution=zoned:50/10:50/20,100/5",
        "fio 3.33 drops the job, though its manual has this",
        Refusal("failed parsing"),
    ),
    (
        "rw=randread\nnorandommap\nsize=64k\nrandom_distribution=zoned_abs:50/32k:50/64k",
        "fio stops at the first I/O beyond it",
        Prints("sizes exceed file size"),
    ),
    ("rw=randread:2k", "fio reads `2` and says nothing", Taken),
    (
        "thinktime=4294967297",
        "fio keeps 32 bits of this many microseconds",
        Ios(16),
    ),
    (
        "ss=iops\nss_dur=1",
        "fio drops the job",
        Refusal("threshold must be specified"),
    ),
    (
        "ioengine=null:x",
        "fio leaves it out and says nothing",
        Ios(16),
    ),
    ("ioengine=exec", "fio has it, diskperf has not", Taken),
    (
        "ioengine=e4defrag\ndonorname=f",
        "fio has this engine, diskperf has not",
        Taken,
    ),
    (
        "clientname=admin",
        "clientname is an option of the engine rbd",
        Refusal("Bad option <clientname=admin>"),
    ),
    (
        "load=2",
        "fio too does nothing for it: it is of fio's profile act",
        Ios(16),
    ),
    (
        "prep",
        "fio too does nothing for it: it is of fio's profile act",
        Ios(16),
    ),
    (
        "numruns=9",
        "fio too does nothing for it: it is of fio's profile tiobench",
        Ios(16),
    ),
    (
        "block=8k",
        "fio too does nothing for it: it is of fio's profile tiobench, and the size of a block is bs",
        Ios(16),
    ),
    (
        "dir=/nowhere",
        "fio too does nothing for it: it is of fio's profile tiobench, and the directory is directory",
        Ios(16),
    ),
    (
        "threads=3",
        "fio too does nothing for it: it is of fio's profile tiobench, and the number of jobs is numjobs",
        Ios(16),
    ),
    (
        "rw=write\nsync_file_range=wait_before:2,write:8",
        "fio leaves this step out, and says nothing",
        Taken,
    ),
    ("replay_align=3", "fio drops the job", Refusal("power-of-2")),
    (
        "ignore_error=EFOO",
        "fio knows no error `EFOO`",
        Refusal("Unknown error EFOO"),
    ),
    (
        "verifysort=1",
        "fio too does nothing for it any more",
        Prints("is deprecated"),
    ),
    (
        "verifysort_nr=8",
        "fio too does nothing for it any more",
        Prints("is deprecated"),
    ),
    (
        "flow_watermark=8",
        "fio too does nothing for it any more",
        Prints("is deprecated"),
    ),
    (
        "rwmixcycle=8",
        "fio has given it up, and drops the job",
        Refusal("deprecated"),
    ),
    (
        "percentage_sequential=8",
        "fio has given it up, and drops the job",
        Refusal("deprecated"),
    ),
    (
        "percentile_list=1:2:3:4:5:6:7:8:9:10:11:12:13:14:15:16:17:18:19:20:21",
        "fio leaves the rest out",
        Prints("exceeding max length 20"),
    ),
    (
        "ioengine=psync\nfilename=a: b",
        "fio calls this file ` b`",
        File(" b"),
    ),
    (
        "ioengine=psync\nfilename=D:\\x",
        "fio takes 2 files: D, \\x",
        File("\\x"),
    ),
    (
        "directory= /tmp",
        "fio makes it part of the name, and drops the job",
        Refusal("is not a directory"),
    ),
    (
        "ioengine=psync\nfilename_format=f.$foo",
        "fio keeps it as it is",
        File("f.$foo"),
    ),
    (
        "io_size=200%",
        "fio drops the job",
        Refusal("greater than 100%"),
    ),
    (
        "size=50.5%",
        "fio reads 50 and says nothing",
        Reads("size", 50),
    ),
    ("[]\nsize=4k", "a section without a name", Taken),
    (
        "[yz\nioengine=null\nsize=4k",
        "a section without its closing bracket: fio calls this job `y`",
        Prints("\ny: (g=0)"),
    ),
    (
        "[y] z\nioengine=null\nsize=4k",
        "a section without its closing bracket: fio calls this job `y] `",
        Prints("\ny] : (g=0)"),
    ),
    (
        "[ab #2]\nioengine=null\nsize=4k",
        "`#` begins a comment inside the name of a section: fio calls this job `a`",
        Prints("\na: (g=0)"),
    ),
    (
        "includefoo",
        "fio reads this as the file `oo`",
        Refusal("unable to open 'oo'"),
    ),
    (
        "filename=a#b",
        "fio has no quotes: a value holds neither `;` nor `#`",
        Ios(16),
    ),
    (
        "bs=4k*$ncpus",
        "fio gives this to bc",
        Refusal("failed parsing"),
    ),
    (
        "bs=${NOT_SET_HERE}4k",
        "fio puts nothing in its place",
        Reads("bs", 4096),
    ),
    (
        "iodepth=4294967298",
        "fio keeps 32 bits of it, which are 2",
        Taken,
    ),
    (
        "bs=(2*4k)",
        "8192; Debian's fio is built without this and drops the job",
        Refusal("failed parsing"),
    ),
    (
        "size=64KiB",
        "fio reads `64KiB` as a power of 1000",
        Reads("size", 64_000),
    ),
    (
        "size=64Ki",
        "fio reads `64Ki` as `64K`",
        Reads("size", 65_536),
    ),
    (
        "size=1.5g",
        "fio reads 1 and says nothing",
        Reads("size", 1),
    ),
    (
        "runtime=5min",
        "fio reads 5 us and says nothing",
        Reads("runtime", 5),
    ),
    ("size=k", "fio drops the job", Refusal("failed parsing")),
    (
        "direct=2",
        "fio reads 2 and drops the job",
        Refusal("failed parsing"),
    ),
    (
        "thread=5",
        "fio reads 5 and takes it as 1",
        Reads("thread", 5),
    ),
    (
        "direct=-1",
        "fio reads -1 and says nothing",
        Reads("direct", -1),
    ),
    (
        "direct=true",
        "fio drops the job",
        Refusal("failed parsing"),
    ),
    (
        "numjobs=2,3",
        "fio takes `2` and says nothing",
        Reads("numjobs", 2),
    ),
    ("bs=4k-16k", "fio reads `4k,16k`", Reads("bs", 4096)),
];

/// Sentences that need another frame than [`CASES`], each with its own test here, and
/// words that say nothing of fio.
const ELSEWHERE: &[&str] = &[
    "fio takes at most",
    "fio takes this for an option",
    "fio ignores the options above a section in an included file",
    "fio treats a line that starts with `include` as an include",
    "diskperf has no fio clients",
    "fio reads no further",
    "fio leaves this out",
    "fio ends here",
    "is no option of fio",
    "it is of fio itself",
    "it is of fio's own process",
    "--fio-arg",
    "--format fio-json",
    "use fio",
    "fio has no option `--",
    "fio has no output format",
    "gives way to {whose}, as with fio",
    // Titles whose labels are cases.
    "not every fio works out an expression",
    "not every fio takes zones by direction",
    // Of builds with an expression parser, and of limits of hundreds of parts.
    "a whole number (fio drops the fraction)",
    "fio drops the rest",
];

/// A whole file for the options of a case.
fn whole(options: &str) -> String {
    format!("[x]\nioengine=null\nsize=64k\n{options}\n")
}

/// All that is said of a file here: errors, or warnings and what is ignored, and what its
/// files become.
fn said(text: &str) -> String {
    let plan = |file: &JobFile| {
        let planned = diskperf_fio::plan::plan_files(&file.jobs[0], 0, &Default::default());
        planned
            .err()
            .map_or(String::new(), |problem| problem.render(false))
    };
    match ours(text) {
        Err(errors) => errors.render(false),
        Ok(file) => {
            let warnings = file.warnings.iter().map(|warning| warning.render(false));
            let ignored = file.ignored.iter().map(|ignored| ignored.reason.to_owned());
            let all: Vec<String> = warnings.chain(ignored).chain([plan(&file)]).collect();
            all.join("\n")
        }
    }
}

pub(crate) fn total(output: &str) -> Option<u64> {
    let from = output.find("\n{").map_or(0, |at| at + 1);
    let report: Value = serde_json::from_str(output.get(from..=output.rfind('}')?)?).ok()?;
    let jobs = report["jobs"].as_array()?.iter();
    let of_job = |job: &Value| {
        ["read", "write", "trim"].map(|way| job[way]["total_ios"].as_u64().unwrap_or(0))
    };
    Some(jobs.flat_map(of_job).sum())
}

#[test]
fn what_is_said_of_fio_is_so() {
    let Some(fio) = Fio::installed() else { return };
    for (options, sentence, shows) in CASES {
        let text = whole(options);
        let said = said(&text);
        assert!(said.contains(sentence), "{options}: {said}");
        match shows {
            Refusal(words) => {
                let (output, went_well) = fio.run(&text, &[]);
                assert!(!went_well && output.contains(words), "{options}: {output}");
            }
            Taken => {
                let (output, went_well) = fio.run(&text, &["--parse-only"]);
                assert!(went_well, "{options}: {output}");
            }
            Reads(key, value) => {
                let (output, went_well) = fio.run(&text, &["--parse-only", "--debug=parse"]);
                let outs = crate::outs(&output, key);
                assert!(went_well, "{options}: {output}");
                assert_eq!(outs.first(), Some(value), "{options}");
            }
            Ios(ios) => {
                let (output, went_well) = fio.run(&text, &["--output-format=json"]);
                assert!(went_well, "{options}: {output}");
                assert_eq!(total(&output), Some(*ios), "{options}");
            }
            File(name) => {
                let (output, went_well) = fio.run(&text, &[]);
                assert!(went_well, "{options}: {output}");
                assert!(fio.path().join(name).is_file(), "{options}: no {name}");
            }
            Prints(words) => {
                let (output, _) = fio.run(&text, &[]);
                assert!(output.contains(words), "{options}: {output}");
            }
        }
    }
}

/// What stands in no section, or in none at all.
#[test]
fn what_is_said_of_whole_files_is_so() {
    let Some(fio) = Fio::installed() else { return };
    let long = whole(&format!("description={}", "a".repeat(9000)));
    for (text, sentence, words) in [
        (&*long, "fio takes at most 8191", "Bad option"),
        (
            "\u{feff}[x]\nsize=4k\n",
            "fio takes this for an option",
            "outside of [] job section",
        ),
        ("[global]\nsize=4k\n", "has no job", "No job(s) defined"),
        (
            "size=4k\n[x]\n",
            "before the first `[name]`",
            "outside of [] job section",
        ),
    ] {
        let said = said(text);
        assert!(said.contains(sentence), "{sentence}: {said}");
        let (output, went_well) = fio.run(text, &[]);
        assert!(!went_well && output.contains(words), "{sentence}: {output}");
    }
}

/// Included files, of which some have a section, by name.
const INCLUDED: &[(&str, &str)] = &[
    ("named", "bs=8k\n[y]\nsize=4k\n"),
    ("global", "\n; options of all\n[global]\nbs=64k\n"),
    ("nested", "bs=16k\ninclude named\n"),
    ("before", "include named\nbs=32k\n"),
    ("options", "rw=write\n"),
    ("between", "bs=16k\ninclude options\nbs=32k\n[y]\n"),
];

/// A section in an included file ends it, and the section that includes it.
#[test]
fn sections_in_included_files_end_them_as_in_fio() {
    let Some(fio) = Fio::installed() else { return };
    for (name, text) in INCLUDED {
        std::fs::write(fio.path().join(name), text).expect("a file");
    }
    let files = INCLUDED.iter();
    let files = files.map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
    let surroundings = JobEnvironment {
        file_source: FileSource::Memory(files.collect()),
        ..JobEnvironment::default()
    };
    let before = "[x]\nioengine=null\nsize=64k\nrw=read\n";
    let after = "[z]\nioengine=null\nsize=32k\nrw=write\n";
    let middles = ["", "\n; a comment\n", "bs=2k\n", "include named\n"];
    let cases = INCLUDED.iter().flat_map(|(name, _)| {
        middles.map(|middle| format!("{before}include {name}\n{middle}{after}"))
    });
    let (mut taken, mut refused) = (0, 0);
    for text in cases {
        let (output, went_well) = fio.run(&text, &["--output-format=json"]);
        let parsed = JobFile::parse("job.fio", &text, &surroundings);
        assert_eq!(parsed.is_ok(), went_well, "{text}: {parsed:?}: {output}");
        let file = match parsed {
            Ok(file) => file,
            Err(errors) => {
                let said = errors.render(false);
                assert!(said.contains("stands outside of a section"), "{said}");
                refused += 1;
                continue;
            }
        };
        let block_bytes = file.jobs[0].blocks.fixed_bytes.read;
        assert_eq!(total(&output), Some((64 << 10) / block_bytes + 8), "{text}");
        let said = file.warnings.iter().map(|warning| warning.render(false));
        let said: String = said.collect();
        let is_cut = output.contains("No new sections in included files");
        let is_said = said.contains("fio ignores the options above a section");
        assert_eq!(is_cut, is_said, "{text}: {said}");
        taken += 1;
    }
    assert!(
        taken > 10 && refused > 5,
        "{taken} taken, {refused} refused"
    );
}

/// What is said of the words of the command line.
#[test]
fn what_is_said_of_the_command_line_is_so() {
    let Some(fio) = Fio::installed() else { return };
    for (word, words) in [
        ("--bogus=3", "unrecognized option"),
        ("--fil=x", "is ambiguous"),
        ("--section=y", "No job(s) defined"),
        ("--output-format=json,xml", "invalid output format xml"),
        ("--readonly", "read-only mode"),
    ] {
        let (output, went_well) = fio.run(&whole("rw=write"), &[word]);
        assert!(!went_well && output.contains(words), "{word}: {output}");
    }
    // Defaults, wherever they stand: the file goes before them.
    for (words, ios) in [
        (&["--bs=2k"][..], 32),
        (&["--size=4k"], 16),
        (&["--bs=8k", "--section=x"], 8),
    ] {
        let (output, _) = fio.run(&whole(""), &[words, &["--output-format=json"]].concat());
        assert_eq!(total(&output), Some(ios), "{words:?}");
    }
}

/// The texts in quotes of a source file, without comments and tests.
pub(crate) fn literals(source: &str) -> Vec<String> {
    let code = source.split("#[cfg(test)]").next().unwrap_or("");
    let lines = code
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"));
    let code = lines.collect::<Vec<_>>().join("\n").replace("\\\"", "'");
    let quoted = code.split('"').skip(1).step_by(2);
    quoted.map(str::to_owned).collect()
}

/// Whether a text has the parts of a pattern between its `{}`, in order.
pub(crate) fn matches(pattern: &str, text: &str) -> bool {
    let mut rest = text;
    for part in pattern.split('{').enumerate().map(|(at, part)| match at {
        0 => part,
        _ => part.split_once('}').map_or("", |(_, part)| part),
    }) {
        let Some(at) = rest.find(part) else {
            return false;
        };
        rest = &rest[at + part.len()..];
    }
    true
}

#[test]
fn every_sentence_about_fio_has_its_case() {
    let mut sources = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    let mut missing = Vec::new();
    while let Some(path) = sources.pop() {
        if path.is_dir() {
            let entries = std::fs::read_dir(&path).expect("a folder");
            sources.extend(entries.map(|entry| entry.expect("a file").path()));
            continue;
        }
        let is_tested = path.ends_with("tests.rs") || path.to_string_lossy().contains("results");
        let source = std::fs::read_to_string(&path).expect("a source");
        for literal in literals(&source).into_iter().filter(|_| !is_tested) {
            let is_of_fio = literal.contains("fio ") || literal.contains("fio's");
            let is_elsewhere = ELSEWHERE.iter().any(|words| literal.contains(words));
            let is_case = CASES
                .iter()
                .any(|(_, sentence, _)| matches(&literal, sentence) || literal.contains(sentence));
            if is_of_fio && !is_elsewhere && !is_case {
                missing.push(literal);
            }
        }
    }
    assert!(missing.is_empty(), "no case of {missing:#?}");
}
