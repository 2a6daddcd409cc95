//! Selection of the stored runs that a list shows.

use diskperf_store::RunHeading;

/// Properties that all runs of a list share. The default selects all runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunSelection {
    /// Suite of the runs, or the single program that they run.
    pub suite: Option<String>,
    /// Target of the runs, alone or together with others. Different paths of the same place match.
    pub target: Option<String>,
    /// Label that the selected runs have.
    pub label: Option<String>,
    /// Earliest start of a run, in milliseconds of Unix time.
    pub since_unix_ms: Option<u64>,
    /// Maximum number of runs; the newest are kept.
    pub count_max: Option<usize>,
}

impl RunSelection {
    /// Returns the selected runs of a list that is sorted newest first.
    pub fn select(&self, mut runs: Vec<RunHeading>) -> Vec<RunHeading> {
        let place = self.target.as_deref().and_then(to_absolute);
        runs.retain(|run| self.matches(run, place.as_deref()));
        runs.truncate(self.count_max.unwrap_or(usize::MAX));
        runs
    }

    /// Reports whether a run is selected. `place` is the absolute path of the target, if it exists.
    fn matches(&self, run: &RunHeading, place: Option<&str>) -> bool {
        let is = |wanted: &Option<String>, found: Option<&str>| {
            wanted.is_none() || wanted.as_deref() == found
        };
        let is_on = |wanted: &String| {
            let mut targets = run.target.split(" + ");
            let mut places = run.target_paths.iter();
            match place {
                // What `.` was depends on where one was.
                Some(place) if !run.target_paths.is_empty() => places.any(|one| one == place),
                _ => targets
                    .any(|target| strip_trailing_slash(target) == strip_trailing_slash(wanted)),
            }
        };
        is(&self.suite, Some(&run.suite))
            && is(&self.label, run.label.as_deref())
            && self.target.as_ref().is_none_or(is_on)
            && self
                .since_unix_ms
                .is_none_or(|since| run.started_unix_ms >= since)
    }
}

/// Returns the absolute path in the form that runs store; `None` if the target does not exist.
fn to_absolute(target: &str) -> Option<String> {
    let path = std::fs::canonicalize(target).ok()?;
    path.into_os_string().into_string().ok()
}

/// Returns a target without redundant parts: `./data/` becomes `data`.
fn strip_trailing_slash(target: &str) -> &str {
    let target = target.strip_prefix("./").unwrap_or(target);
    match target.trim_end_matches('/') {
        "" => target,
        rest => rest,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use diskperf_timeline::{MeasuredWorld, RunState};

    fn heading(id: &str, suite: &str, target: &str, label: Option<&str>) -> RunHeading {
        RunHeading {
            id: id.to_owned(),
            started_unix_ms: u64::from_str_radix(id, 16).unwrap(),
            suite: suite.to_owned(),
            target: target.to_owned(),
            target_paths: Vec::new(),
            world: MeasuredWorld::Host,
            label: label.map(str::to_owned),
            state: RunState::Finished,
            result_count: 1,
            repetition_count: 1,
        }
    }

    #[test]
    fn runs_are_selected_by_all_that_is_asked() {
        let runs = vec![
            heading("d", "ffs83", "./a + /b", None),
            heading("c", "ffs83", "./a/", Some("new")),
            heading("b", "seqread89", "/b", Some("old")),
            heading("a", "ffs83", "/", None),
        ];
        let text = |text: &str| Some(text.to_owned());
        let all = RunSelection::default();
        for (selection, ids) in [
            (all.clone(), "dcba"),
            (
                RunSelection {
                    suite: text("ffs83"),
                    ..all.clone()
                },
                "dca",
            ),
            (
                RunSelection {
                    target: text("a"),
                    ..all.clone()
                },
                "dc",
            ),
            (
                RunSelection {
                    target: text("/b/"),
                    ..all.clone()
                },
                "db",
            ),
            (
                RunSelection {
                    target: text("/"),
                    ..all.clone()
                },
                "a",
            ),
            (
                RunSelection {
                    label: text("old"),
                    ..all.clone()
                },
                "b",
            ),
            (
                RunSelection {
                    since_unix_ms: Some(0xc),
                    ..all.clone()
                },
                "dc",
            ),
            (
                RunSelection {
                    count_max: Some(1),
                    ..all.clone()
                },
                "d",
            ),
            (
                RunSelection {
                    suite: text("ffs83"),
                    target: text("./a"),
                    count_max: Some(9),
                    ..all
                },
                "dc",
            ),
        ] {
            let found: String = selection
                .select(runs.clone())
                .into_iter()
                .map(|run| run.id)
                .collect();
            assert_eq!(found, ids, "{selection:?}");
        }
    }

    #[test]
    fn a_place_is_the_same_by_any_path() {
        let here = std::env::current_dir().unwrap().display().to_string();
        let on = |id: &str, target: &str, place: &str| RunHeading {
            target_paths: vec![place.to_owned()],
            ..heading(id, "ffs83", target, None)
        };
        let runs = vec![
            on("c", ".", &here),
            on("b", ".", "/elsewhere"),
            on("a", "there", &here),
        ];
        for (target, ids) in [
            (".", "ca"),
            (here.as_str(), "ca"),
            ("there", "a"),
            ("/", ""),
        ] {
            let selection = RunSelection {
                target: Some(target.to_owned()),
                ..RunSelection::default()
            };
            let found = selection.select(runs.clone()).into_iter();
            let found: String = found.map(|run| run.id).collect();
            assert_eq!(found, ids, "{target}");
        }
    }
}
