//! Fuzz targets for stored runs: export documents and result stores.

use crate::{FuzzBody, FuzzTarget};
use diskperf_laboratory::execute::execute;
use diskperf_laboratory::plan::plan;
use diskperf_laboratory::{Experiment, RunRecorder, SilentObserver, SizeChoice, Workload, runs};
use diskperf_store::Store;
use diskperf_timeline::Run;
use rusqlite::Connection;
use rusqlite::types::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tempfile::TempDir;

/// Input for the document parser: a document of runs, as `diskperf export` writes it.
pub(crate) const DOCUMENT: FuzzTarget = FuzzTarget {
    name: "document",
    make_body: make_document_body,
    make_seeds: document_seeds,
    keywords: &[
        "null",
        "-1",
        "1e308",
        "18446744073709551615",
        "[]",
        "{}",
        "\"state\":\"failed\"",
        "\\u001b[31m",
        "true",
    ],
};

/// Input for the store: the bytes of its file.
pub(crate) const STORE_FILE: FuzzTarget = FuzzTarget {
    name: "store_file",
    make_body: make_store_file_body,
    make_seeds: || vec![store_with_run(&sample_run())],
    keywords: &[
        "SQLite format 3\0",
        "dskp",
        "CREATE TABLE runs (",
        "\0\0\0\0",
        "\u{7f}",
    ],
};

/// Input for reading a store row: one byte for the column, one for the value's type, and the value.
pub(crate) const STORE_ROW: FuzzTarget = FuzzTarget {
    name: "store_row",
    make_body: make_store_row_body,
    make_seeds: row_seeds,
    keywords: &[
        "finished",
        "failed",
        "model",
        "host",
        "warm",
        "{\"",
        "null",
        "9223372036854775807",
        "last",
        "../",
    ],
};

/// Temporary file with a unique name, in memory if possible.
struct TemporaryFiles {
    folder: TempDir,
    next_index: AtomicU64,
}

impl TemporaryFiles {
    fn new() -> Self {
        let memory = Path::new("/dev/shm");
        let folder = match memory.is_dir() {
            true => TempDir::new_in(memory),
            false => TempDir::new(),
        };
        Self {
            folder: folder.expect("a folder for temporary files"),
            next_index: AtomicU64::new(0),
        }
    }

    /// Writes a file, passes it to a function, and removes it with its auxiliary files.
    fn with_file(&self, bytes: &[u8], use_it: impl FnOnce(&Path)) {
        let number = self.next_index.fetch_add(1, Ordering::Relaxed);
        let folder = self.folder.path().join(number.to_string());
        std::fs::create_dir(&folder).expect("a folder of our own");
        let path = folder.join("file");
        std::fs::write(&path, bytes).expect("a file of our own");
        use_it(&path);
        std::fs::remove_dir_all(&folder).expect("what is ours goes");
    }
}

fn make_document_body() -> FuzzBody {
    let files = TemporaryFiles::new();
    Box::new(move |bytes| {
        files.with_file(bytes, |path| {
            if let Err(error) = runs::load_runs(None, &path.to_string_lossy()) {
                assert!(!error.to_string().is_empty());
            }
        });
    })
}

fn make_store_file_body() -> FuzzBody {
    let files = TemporaryFiles::new();
    Box::new(move |bytes| files.with_file(bytes, read_store))
}

fn read_store(path: &Path) {
    let Ok(store) = Store::open_with_lock_wait(path, Duration::ZERO) else {
        return;
    };
    let _ = store.resolve_run_id("last");
    let _ = store.resolve_run_id("a");
    let _ = store.list_workspaces();
    let _ = store.list_damaged_runs();
    let _ = store.read_point("a");
    for heading in store.list_runs().unwrap_or_default() {
        let _ = store.load_run(&heading.id);
    }
}

const STORE_COLUMNS: [(&str, &str); 16] = [
    ("runs", "id"),
    ("runs", "started_unix_ms"),
    ("runs", "suite"),
    ("runs", "target"),
    ("runs", "world"),
    ("runs", "label"),
    ("runs", "state"),
    ("runs", "error"),
    ("runs", "document"),
    ("results", "ordinal"),
    ("results", "document"),
    ("repetitions", "number"),
    ("repetitions", "document"),
    ("workspaces", "path"),
    ("points", "document"),
    ("workspaces", "filesystem"),
];

fn make_store_row_body() -> FuzzBody {
    let files = TemporaryFiles::new();
    let template = store_with_run(&sample_run());
    Box::new(move |bytes| {
        let [column, kind, value @ ..] = bytes else {
            return;
        };
        let (table, column) = STORE_COLUMNS[usize::from(*column) % STORE_COLUMNS.len()];
        let text = || String::from_utf8_lossy(value).into_owned();
        let value = match kind % 5 {
            0 => Value::Null,
            1 => Value::Integer(text().trim().parse().unwrap_or(value.len() as i64)),
            2 => Value::Real(text().trim().parse().unwrap_or(f64::NAN)),
            3 => Value::Text(text()),
            _ => Value::Blob(value.to_vec()),
        };
        files.with_file(&template, |path| {
            let connection = Connection::open(path).expect("a store of our own");
            // What the schema refuses is not there to be read.
            let changed = connection.execute(&format!("UPDATE {table} SET {column} = ?1"), [value]);
            let known = !matches!(&changed, Err(error) if error.to_string().contains("no such"));
            assert!(known, "{table}.{column} is not in a store: {changed:?}");
            drop(connection);
            read_store(path);
        });
    })
}

fn sample_run() -> Run {
    let experiment = Experiment {
        workload: Workload::NamedSuite("read_8192".to_owned()),
        targets: vec![PathBuf::from("vax780-sc780-eagle")],
        size_choice: SizeChoice::SizeBytes(64 << 10),
        repetition_count: Some(2),
        label: Some("a label".to_owned()),
        ..Experiment::default()
    };
    let plans = plan(&experiment).expect("a plan");
    let mut recorder = RunRecorder::without_store();
    let executed = execute(
        &plans[0],
        &Arc::default(),
        &mut SilentObserver,
        &mut recorder,
    );
    let mut run = executed.run;
    // Texts of the catalogue are most of a document.
    if let Some(model) = &mut run.model_information {
        model.catalogue.clear();
    }
    run
}

/// Returns the bytes of a store with a run and a row of each other kind.
fn store_with_run(run: &Run) -> Vec<u8> {
    let folder = TempDir::new().expect("a folder for temporary files");
    let path = folder.path().join("store");
    let mut store = Store::open(&path).expect("a new store");
    store.insert_run(run).expect("it takes a run");
    store
        .note_workspace(Path::new("/tmp/.diskperf-1"), Some("a file system"))
        .expect("it takes a folder");
    let point = ("a".to_owned(), "{}".to_owned());
    store.add_points(&[point]).expect("it takes a point");
    drop(store);
    let connection = Connection::open(&path).expect("it is a database");
    let merged =
        connection.execute_batch("PRAGMA wal_checkpoint(TRUNCATE); PRAGMA journal_mode=DELETE;");
    merged.expect("nobody else has it");
    drop(connection);
    std::fs::read(&path).expect("it is there")
}

fn document_seeds() -> Vec<Vec<u8>> {
    let run = sample_run();
    let two = [
        run.clone(),
        Run {
            results: Vec::new(),
            ..run.clone()
        },
    ];
    let texts = [runs::render_export(&[run]), runs::render_export(&two)];
    let texts = texts.map(|text| text.expect("a run is a document"));
    texts.map(String::into_bytes).into()
}

fn row_seeds() -> Vec<Vec<u8>> {
    let run = sample_run();
    let document = serde_json::to_string(&run).expect("a run is a document");
    let repetition =
        serde_json::to_string(&run.results[0].repetitions[0]).expect("so is a repetition");
    let row = |column: u8, kind: u8, value: &str| [&[column, kind], value.as_bytes()].concat();
    vec![
        row(0, 3, "00000000aa"),
        row(1, 1, "253402300800000"),
        row(5, 3, "last"),
        row(6, 3, "failed"),
        row(8, 3, &document),
        row(9, 1, "-1"),
        row(11, 1, "4294967296"),
        row(12, 3, &repetition),
        row(13, 4, "/tmp/\u{1b}[31m"),
    ]
}
