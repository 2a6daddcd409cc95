//! Search and parsing of the files of a system and its components.

use std::path::Path;
use std::sync::Arc;

use super::super::component::Component;
use super::super::file::CatalogueFile;
use super::super::names;
use super::super::read_file;
use super::super::shape::{ParsedValue, ValueKind};
use super::super::system::{SystemPart, ValueLayer};
use super::super::value::Table;
use super::{SourceLayer, SystemResolver};
use diskperf_diagnostics::Problem;
use diskperf_diagnostics::SourceSpan;

impl SystemResolver<'_> {
    /// Returns the files of a system, from lowest to highest precedence. `None` if a file is
    /// missing or cannot be read, which is recorded as a problem.
    pub(super) fn system_layers(&mut self, target: &str) -> Option<Vec<SourceLayer>> {
        let top = if target.ends_with(".toml") {
            match read_file(Path::new(target)) {
                Ok(file) => {
                    let level = self.parse_layer(&file)?;
                    if let Some(problem) = misplaced_component_file(Path::new(target), &level.table)
                    {
                        self.push_problem(problem);
                        return None;
                    }
                    vec![level]
                }
                Err(problem) => {
                    self.push_problem(problem);
                    return None;
                }
            }
        } else {
            self.named_system_layers(target, None)?
        };
        let Some((base, place)) = top
            .first()
            .and_then(|level| self.extended_file_name(&level.table))
        else {
            return Some(top);
        };
        let mut layers = self.named_system_layers(&base, Some(&place))?;
        let own = |level: &SourceLayer| level.file.as_ref().map(|file| file.name().to_owned());
        if layers.iter().any(|level| own(level) == own(&top[0])) {
            self.push_problem(Problem::error(format!("`{base}` extends itself")).at(&place, ""));
            return None;
        }
        if let Some((_, deeper)) = self.extended_file_name(&layers[0].table) {
            self.push_problem(nested_extends(&base, &place, &deeper));
            return None;
        }
        layers.extend(top);
        Some(layers)
    }

    /// Returns the file of `NAME`, or both files of `NAME:VARIANT`.
    fn named_system_layers(
        &mut self,
        target: &str,
        place: Option<&SourceSpan>,
    ) -> Option<Vec<SourceLayer>> {
        let base = target.split(':').next().unwrap_or(target);
        let mut paths = vec![format!("systems/{base}.toml")];
        if target.contains(':') {
            paths.push(format!("systems/{}.toml", target.replacen(':', "/", 1)));
        }
        let files: Option<Vec<_>> = paths
            .iter()
            .map(|path| self.catalogue.file(path).cloned())
            .collect();
        // `a/b` would find the file of `a:b`: one spelling is enough.
        let Some(files) = files.filter(|_| !target.contains('/')) else {
            let names = self.catalogue.system_names();
            let title = format!("the catalogue has no system `{target}`");
            let problem = Problem::error(title).help(names::suggest_names(
                target,
                names.iter().map(String::as_str),
            ));
            self.push_problem(match place {
                Some(place) => problem.at(place, ""),
                None => problem,
            });
            return None;
        };
        let levels: Option<Vec<SourceLayer>> =
            files.iter().map(|file| self.parse_layer(file)).collect();
        let levels = levels?;
        if let [_, variant] = levels.as_slice()
            && let Some((_, place)) = self.extended_file_name(&variant.table)
        {
            let title = "a variant holds what differs from its system, and extends nothing else";
            self.push_problem(Problem::error(title).at(&place, ""));
        }
        Some(levels)
    }

    fn parse_layer(&mut self, file: &CatalogueFile) -> Option<SourceLayer> {
        let text = &file.text;
        self.texts.insert(text.name().to_owned(), Arc::clone(text));
        match file.table() {
            Ok(table) => {
                let source = table.text("source").unwrap_or_default().to_string();
                Some(SourceLayer {
                    table,
                    source,
                    file: Some(Arc::clone(text)),
                })
            }
            Err(problems) => {
                self.problems.extend(problems);
                None
            }
        }
    }

    fn extended_file_name(&mut self, table: &Table) -> Option<(String, SourceSpan)> {
        let entry = table.get("extends")?;
        match ValueKind::Text.parse("extends", &entry.value) {
            Ok(ParsedValue::Text(name)) => Some((name, entry.value.span.clone())),
            Ok(_) => None,
            Err(problem) => {
                self.problems.push(problem);
                None
            }
        }
    }

    /// Returns a component's file on top of the file it extends.
    pub(super) fn component_layers(
        &mut self,
        component: Component,
        name: &str,
        place: Option<&SourceSpan>,
    ) -> Option<SystemPart> {
        let top = self.load_component_file(component, name, place)?;
        let file = top.file.clone()?;
        let mut levels = Vec::new();
        if let Some((base, place)) = self.extended_file_name(&top.table) {
            if base == name {
                let problem = Problem::error(format!("`{name}` extends itself")).at(&place, "");
                self.push_problem(problem);
                return None;
            }
            let level = self.load_component_file(component, &base, Some(&place))?;
            if let Some((_, deeper)) = self.extended_file_name(&level.table) {
                self.push_problem(nested_extends(&base, &place, &deeper));
                return None;
            }
            levels.push(level);
        }
        levels.push(top);
        let layers = levels
            .into_iter()
            .map(|level| ValueLayer {
                table: level.table,
                source: level.source,
                is_file: true,
            })
            .collect();
        Some(SystemPart {
            name: name.to_string(),
            file,
            layers,
        })
    }

    fn load_component_file(
        &mut self,
        component: Component,
        name: &str,
        place: Option<&SourceSpan>,
    ) -> Option<SourceLayer> {
        let path = component.file_path(name);
        match self.catalogue.file(&path).cloned() {
            Some(file) => self.parse_layer_once(&file),
            None => {
                let known = self.catalogue.component_names(component);
                let problem = Problem::error(format!("the catalogue has no {component} `{name}`"))
                    .help(names::suggest_names(name, known.iter().map(String::as_str)));
                self.push_problem(match place {
                    Some(place) => problem.at(place, ""),
                    None => problem,
                });
                None
            }
        }
    }

    /// Parses a file that several drives may share, and reports its problems only once.
    fn parse_layer_once(&mut self, file: &CatalogueFile) -> Option<SourceLayer> {
        let before = self.problems.len();
        let level = self.parse_layer(file);
        for problem in self.problems.split_off(before) {
            self.push_problem(problem);
        }
        level
    }
}

/// Returns an error if a file is not a system but a component in a user's catalogue.
fn misplaced_component_file(path: &Path, table: &Table) -> Option<Problem> {
    let (name, folder) = (path.file_stem()?.to_str()?, path.parent()?);
    let is_there = |component: &Component| folder.ends_with(component.folder_name());
    let component = Component::ALL.into_iter().find(is_there)?;
    if table.get("components").is_some() || table.get("extends").is_some() {
        return None;
    }
    let catalogue = match folder.parent()?.to_str()? {
        "" => ".",
        catalogue => catalogue,
    };
    let title = format!("{} is a {component}, and no system", path.display());
    Some(Problem::error(title).help(format!(
        "`diskperf show {name} --catalogue {catalogue}` shows it; a system names it in [components]: {component} = \"{name}\""
    )))
}

fn nested_extends(base: &str, place: &SourceSpan, deeper: &SourceSpan) -> Problem {
    Problem::error(format!("`{base}` extends {} in turn", deeper.as_str()))
        .at(place, "one level is allowed")
        .help("extend the last of them, or repeat what the one between adds")
}
