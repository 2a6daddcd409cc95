//! The kinds of component that a system consists of.

use diskperf_timeline::Setting;
use std::fmt;

/// A kind of component. Its name stands in `[components]`, as the name of an
/// override table, and in front of the dot of a `--set` path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Component {
    /// Processor and memory.
    Host,
    /// What the controller moves data over.
    Bus,
    /// The operating system.
    Kernel,
    /// How the files are laid out.
    Filesystem,
    /// The software that runs the controller.
    Driver,
    /// Controller or adaptor.
    Controller,
    /// A disk drive.
    Drive,
}

impl Component {
    /// All of them, from the program's side to the medium.
    pub const ALL: [Component; 7] = [
        Component::Host,
        Component::Bus,
        Component::Kernel,
        Component::Filesystem,
        Component::Driver,
        Component::Controller,
        Component::Drive,
    ];

    /// The name in files and paths: `drive`.
    pub fn name(self) -> &'static str {
        match self {
            Component::Host => "host",
            Component::Bus => "bus",
            Component::Kernel => "kernel",
            Component::Filesystem => "filesystem",
            Component::Driver => "driver",
            Component::Controller => "controller",
            Component::Drive => "drive",
        }
    }

    /// The folder of the catalogue that holds them: `drives`.
    pub fn folder(self) -> &'static str {
        match self {
            Component::Host => "hosts",
            Component::Bus => "buses",
            Component::Kernel => "kernels",
            Component::Filesystem => "filesystems",
            Component::Driver => "drivers",
            Component::Controller => "controllers",
            Component::Drive => "drives",
        }
    }

    /// Whether a drive may have one for itself: `[controller.2]` is the second
    /// drive's.
    pub(crate) fn may_be_of_one_drive(self) -> bool {
        match self {
            Component::Filesystem
            | Component::Driver
            | Component::Controller
            | Component::Drive => true,
            Component::Host | Component::Bus | Component::Kernel => false,
        }
    }

    /// The component of that name.
    pub fn of_name(name: &str) -> Option<Component> {
        Component::ALL
            .into_iter()
            .find(|component| component.name() == name)
    }

    /// Whether a setting is of a component, and not of programs: a word that names none, as
    /// `iodepth=32`, is likelier meant for these.
    pub fn is_set_by(setting: &Setting) -> bool {
        match setting.path.contains('.') {
            true => setting.of_program().is_none(),
            false => Self::of_name(&setting.path).is_some(),
        }
    }

    /// The catalogue's file of the one of that name: `drives/eagle.toml`.
    pub(crate) fn file(self, name: &str) -> String {
        format!("{}/{name}.toml", self.folder())
    }

    /// Every folder of the catalogue.
    pub(crate) fn folders() -> Vec<&'static str> {
        let components = Component::ALL.into_iter().map(Component::folder);
        components
            .chain(["systems", "published", super::expected::FOLDER])
            .collect()
    }

    pub(crate) fn is_folder(name: &str) -> bool {
        Component::folders().contains(&name)
    }
}

impl fmt::Display for Component {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
