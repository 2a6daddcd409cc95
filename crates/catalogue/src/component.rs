//! Kinds of components that form a system.

use diskperf_timeline::Setting;
use std::fmt;

/// Kind of component. Its name is a key of `[components]`, the name of an override table, and the
/// first part of a `--set` path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Component {
    /// CPU and memory of the machine.
    Host,
    /// Bus over which the controller transfers data.
    Bus,
    /// Kernel of the operating system.
    Kernel,
    /// File system with its layout parameters.
    Filesystem,
    /// Device driver of the controller.
    Driver,
    /// Disk controller or host adapter.
    Controller,
    /// Disk drive or flash drive.
    Drive,
}

impl Component {
    /// All kinds of components, from the program's side to the medium.
    pub const ALL: [Component; 7] = [
        Component::Host,
        Component::Bus,
        Component::Kernel,
        Component::Filesystem,
        Component::Driver,
        Component::Controller,
        Component::Drive,
    ];

    /// Returns the name of the kind in files and paths, such as `drive`.
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

    /// Returns the catalogue folder of this kind, such as `drives`.
    pub fn folder_name(self) -> &'static str {
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

    /// Reports whether a drive may have its own component of this kind, as `[controller.2]` for the
    /// second drive.
    pub(crate) fn may_differ_by_drive(self) -> bool {
        match self {
            Component::Filesystem
            | Component::Driver
            | Component::Controller
            | Component::Drive => true,
            Component::Host | Component::Bus | Component::Kernel => false,
        }
    }

    /// Returns the kind of component with this name.
    pub fn from_name(name: &str) -> Option<Component> {
        Component::ALL
            .into_iter()
            .find(|component| component.name() == name)
    }

    /// Reports whether a setting belongs to a component rather than to programs. A path without a
    /// component name, such as `iodepth=32`, is more likely meant for programs.
    pub fn is_changed_by(setting: &Setting) -> bool {
        match setting.path.contains('.') {
            true => setting.program_parameter_name().is_none(),
            false => Self::from_name(&setting.path).is_some(),
        }
    }

    /// Returns the path of a component's file in the catalogue, such as `drives/eagle.toml`.
    pub(crate) fn file_path(self, name: &str) -> String {
        format!("{}/{name}.toml", self.folder_name())
    }

    pub(crate) fn folder_names() -> Vec<&'static str> {
        let components = Component::ALL.into_iter().map(Component::folder_name);
        components
            .chain(["systems", "published", super::expected::EXPECTED_FOLDER])
            .collect()
    }

    pub(crate) fn is_folder_name(name: &str) -> bool {
        Component::folder_names().contains(&name)
    }
}

impl fmt::Display for Component {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
