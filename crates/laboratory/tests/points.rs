//! Points of a parameter study: the figures of a run, whatever ran before.

use diskperf_catalogue::Catalogue;
use diskperf_laboratory::execute::execute;
use diskperf_laboratory::plan::plan;
use diskperf_laboratory::{
    Experiment, LaboratoryError, Observer, ObserverEvent, RunRecorder, Setting, SizeChoice,
    Workload,
};
use diskperf_models::points::{ModelStudy, StudyFigures, StudyPoint};
use diskperf_timeline::{Nanoseconds, Run};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

const SYSTEM: &str = "vax780-sc780-eagle";

struct Silent;

impl Observer for Silent {
    fn handle_event(&mut self, _event: ObserverEvent<'_>) {}
}

fn study(what: &str) -> ModelStudy {
    ModelStudy {
        catalogue: Catalogue::embedded(),
        target: SYSTEM.to_owned(),
        experiment: experiment(what),
    }
}

fn experiment(what: &str) -> Experiment {
    Experiment {
        workload: Workload::NamedSuite(what.to_owned()),
        size_choice: SizeChoice::SizeBytes(1 << 20),
        ..Experiment::default()
    }
}

fn point(settings: &[&str], seed: u64) -> StudyPoint {
    let settings = settings.iter().map(|text| Setting::parse(text));
    StudyPoint {
        settings: settings.collect::<Result<_, _>>().expect("settings"),
        seed,
    }
}

fn figures(study: &ModelStudy, point: &StudyPoint) -> Vec<StudyFigures> {
    let stop = Arc::default();
    study.run_point(point, &stop).expect("the point runs")
}

fn run(what: &str, point: &StudyPoint) -> Run {
    let experiment = Experiment {
        targets: vec![PathBuf::from(SYSTEM)],
        settings: point.settings.clone(),
        seed: point.seed,
        ..experiment(what)
    };
    let plans = plan(&experiment).expect("a plan");
    let mut recorder = RunRecorder::without_store();
    let executed = execute(&plans[0], &Arc::default(), &mut Silent, &mut recorder);
    assert!(recorder.store_failure().is_none());
    executed.run
}

#[test]
fn a_point_has_the_figures_of_a_run() {
    let point = point(
        &["filesystem.block_bytes=4096", "filesystem.rotdelay_ms=7"],
        5,
    );
    let run = run("ffs83", &point);
    let found = figures(&study("ffs83"), &point);
    assert_eq!(found.len(), run.results.len());
    for (program, result) in found.iter().zip(&run.results) {
        assert_eq!(program.program, result.result_key());
        assert_eq!(program.filesystem, "ffs/4096");
        let mut kept: Vec<_> = result.kept_repetitions().collect();
        assert_eq!(program.kept_count as usize, kept.len());
        kept.sort_by_key(|repetition| repetition.elapsed_time());
        let middle = kept[(kept.len() - 1) / 2];
        assert_eq!(program.elapsed_time, middle.elapsed_time());
        assert_eq!(program.payload_bytes, middle.payload_bytes());
        assert!(program.missed_revolution_count <= program.request_count);
        // Files are prepared, and synced afterwards, beside what is timed.
        assert!(program.request_count > 0 && program.processor_busy_time > Nanoseconds::ZERO);
        assert!(program.cpu_percent > 0.0 && program.kb_per_s > 0.0);
    }
}

#[test]
fn a_point_depends_on_no_other() {
    let study = study("random_mix");
    let points = [
        point(&["program.area_bytes=1M"], 1),
        point(&["program.area_bytes=1M", "filesystem.rotdelay_ms=2"], 1),
        point(&["program.area_bytes=1M"], 2),
    ];
    let forwards: Vec<_> = points.iter().map(|one| figures(&study, one)).collect();
    let mut backwards: Vec<_> = points
        .iter()
        .rev()
        .map(|one| figures(&study, one))
        .collect();
    backwards.reverse();
    assert_eq!(forwards, backwards);
    assert_ne!(forwards[0], forwards[2], "seeds differ");
}

#[test]
fn what_is_wrong_names_the_key_and_what_is_stopped_is_interrupted() {
    let study = study("read_8192");
    let stop = Arc::new(AtomicBool::new(false));
    let wrong = study.run_point(&point(&["filesystem.rotdelai_ms=2"], 1), &stop);
    let words = wrong.expect_err("there is no such key").to_string();
    assert!(
        words.contains("rotdelai_ms") && words.contains("rotdelay_ms"),
        "{words}"
    );
    let other = ModelStudy {
        target: "vax780-sc780-eagel".to_owned(),
        ..study.clone()
    };
    let words = other
        .check_study()
        .expect_err("there is no such system")
        .to_string();
    assert!(words.contains(SYSTEM), "{words}");
    let stopped = study.run_point(&point(&[], 1), &Arc::new(AtomicBool::new(true)));
    assert!(
        matches!(stopped, Err(LaboratoryError::Interrupted)),
        "{stopped:?}"
    );
}
