//! Short notation for operations and what they must make: tables of the facts as tests.

use diskperf_linux::block::{BioOperation, DeviceLimits};
use diskperf_linux::effect::Effects;
use diskperf_linux::ext4::Ext4Options;
use diskperf_linux::operation::FileOperation;
use diskperf_linux::request_list::{core_form, describe_bios};
use diskperf_linux::sequence::read_operation;
use diskperf_linux::stack::{FileSystemOptions, Stack};
use diskperf_linux::version::{Host, KernelVersion};
use serde_json::{Value, json};

pub(crate) const GAP_NS: u64 = 20_000_000;

/// Reads an operation in short notation: its name and arguments, lists with commas; `-` is the
/// empty list.
pub(crate) fn operation(text: &str) -> FileOperation {
    let words: Vec<&str> = text.split_whitespace().collect();
    let list = |word: &str| -> Vec<String> {
        word.split(',')
            .filter(|item| *item != "-")
            .map(str::to_owned)
            .collect()
    };
    let takes_list = matches!(words[0], "open" | "sfr");
    let mut items: Vec<Value> = Vec::new();
    for (index, word) in words.iter().enumerate() {
        let is_last = index + 1 == words.len();
        items.push(match word.parse::<f64>() {
            _ if takes_list && is_last => json!(list(word)),
            Ok(_) if word.contains('.') => json!(word.parse::<f64>().expect("a number")),
            Ok(_) => json!(word.parse::<u64>().expect("a whole number")),
            Err(_) if *word == "extend" => json!(""),
            Err(_) => json!(word),
        });
    }
    read_operation(&Value::Array(items)).unwrap_or_else(|| panic!("{text} is no operation"))
}

/// Machine of a version, as the lists were recorded.
pub(crate) fn host(version: KernelVersion) -> Host {
    let is_new = version == KernelVersion::V6_18;
    Host {
        version,
        ticks_per_second: if is_new { 250 } else { 100 },
        processors: if is_new { 2 } else { 1 },
    }
}

/// Loop device of 512 MiB.
pub(crate) fn device() -> DeviceLimits {
    DeviceLimits::loop_device(512 << 20)
}

/// ext4 stack with options of mke2fs and mount, by spaces and commas.
pub(crate) fn ext4(version: KernelVersion, limits: DeviceLimits, make: &str, mount: &str) -> Stack {
    let make: Vec<String> = make.split_whitespace().map(str::to_owned).collect();
    let options = Ext4Options::parse(&make, mount).expect("the options are modelled");
    Stack::new(host(version), limits, FileSystemOptions::Ext4(options)).expect("it is modelled")
}

/// Runs an operation a gap after the one before; the effects of both.
pub(crate) fn run(stack: &mut Stack, text: &str) -> Effects {
    stack.sleep(GAP_NS).expect("time passes");
    stack
        .run(&operation(text))
        .unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Runs operations, and syncs the file system as the recordings did before their first operation.
pub(crate) fn prepare(stack: &mut Stack, operations: &[&str]) {
    for text in operations {
        run(stack, text);
    }
    run(stack, "syncfs");
    stack.sleep(100_000_000).expect("time passes");
}

/// Entries of an operation in core form, by commas.
pub(crate) fn core(stack: &Stack, effects: &Effects) -> String {
    let list = describe_bios(effects.bios(), |file| stack.label(file));
    let entries = core_form(&list).expect("the list is well formed");
    entries
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(", ")
}

/// Reads of data that an operation submits, each as offset and length in KiB.
pub(crate) fn reads(effects: &Effects) -> Vec<String> {
    let data = effects
        .bios()
        .filter(|bio| bio.operation == BioOperation::Read);
    data.filter_map(|bio| match bio.content {
        diskperf_linux::block::BioContent::Data { offset, .. } => {
            Some(format!("{}+{}", offset / 1024, bio.bytes() / 1024))
        }
        _ => None,
    })
    .collect()
}
