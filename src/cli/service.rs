//! `hostler service`: a systemd unit for the user's own instance.

use std::path::Path;

/// Returns the unit. The daemon ends its trees by its own deadlines within 15 s;
/// systemd waits a little longer, and then takes whatever is left in the cgroup.
pub(crate) fn unit(program: &Path) -> String {
    format!(
        "[Unit]
Description=hostler: hosts coding-agent runs
After=network.target

[Service]
ExecStart={} serve
ExecReload=/bin/kill -HUP $MAINPID
KillMode=control-group
KillSignal=SIGTERM
TimeoutStopSec=20
Restart=on-failure
Delegate=yes

[Install]
WantedBy=default.target",
        quoted(program)
    )
}

/// Writes a path as a unit file wants it.
fn quoted(path: &Path) -> String {
    let text = path.to_string_lossy().replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%");
    format!("\"{text}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unit_names_the_program_and_leaves_nothing_behind() {
        let unit = unit(Path::new("/opt/my tools/100%/hostler"));
        assert!(unit.contains("ExecStart=\"/opt/my tools/100%%/hostler\" serve\n"), "{unit}");
        assert!(unit.contains("KillMode=control-group\n") && unit.contains("TimeoutStopSec=20\n"));
    }
}
