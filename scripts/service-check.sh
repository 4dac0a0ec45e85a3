# Runs in a bare Debian 12 with systemd (scripts/release-check.sh), as root, with bash -ex: installs the packages in /packages, takes
# records from the service, upgrades and purges. Its last line is `checked`.
cd /packages
deb=$(ls ringtap_*.deb)
# The service with the flags of its unit, of a user that only exists while it runs.
runs() {
    systemctl is-active ringtap@probe0
    pid=$(systemctl show --property MainPID --value ringtap@probe0)
    status=$(cat "/proc/$pid/status")
    # Not root; no capability is left; the filter of system calls; no new privileges.
    ! grep -P '^Uid:\t0' <<<"$status"
    grep -P '^CapEff:\t0+$' <<<"$status"
    grep -P '^Seccomp:\t2' <<<"$status"
    grep -P '^NoNewPrivs:\t1' <<<"$status"
}
files() {
    find / -xdev \( -path /packages -o -path /proc -o -path /sys -o -path /dev -o -path /run -o -path /tmp -o -path /var/tmp \
        -o -path /var/log -o -path /var/cache -o -path /var/lib/dpkg -o -path /var/lib/systemd -o -path /var/lib/private \) \
        -prune -o -print | sort
}
ip link add probe0 type veth peer name probe1
ip link set probe0 up
ip link set probe1 up
files >before

# From the package to records.
mkdir records
dpkg -i older.deb
nfcapd -p 4739 -w records -t 60 -P nfcapd.pid &
systemctl enable --now ringtap@probe0
runs
older=$pid
ringtap generate --profile mix --packets 10k --seed 1 -i probe1 --rate 20k

# An upgrade keeps a changed configuration, and starts the service anew, which continues the open flows: they end after the
# idle timeout.
echo '# changed here' >>/etc/ringtap/ringtap.toml
dpkg -i "$deb"
grep '^# changed here$' /etc/ringtap/ringtap.toml
runs
[ "$pid" != "$older" ]
sleep 60
systemctl stop ringtap@probe0
kill "$(cat nfcapd.pid)"
wait
records=$(nfdump -R records -o csv -q 2>/dev/null | grep -c ,)
echo "records: $records of nfcapd"
[ "$records" -gt 100 ]
man -w ringtap-monitor 2>/dev/null || [ -e /usr/share/man/man1/ringtap-monitor.1.gz ]

# The other packages.
dpkg -i ringtap-ndn_*.deb ringtap-lab_*.deb
systemctl enable --now ringtap-ndn
ringtap-ndn forward ctl /run/ringtap-ndn/nfd.sock faces
ringtap-lab list >lab
grep rings/ lab

# Nothing is left.
dpkg -P ringtap-lab ringtap-ndn ringtap
[ ! -e /etc/ringtap ]
files >after
diff before after
[ -z "$(find /var/lib/private /var/lib/systemd -name '*ringtap*')" ]
echo checked
