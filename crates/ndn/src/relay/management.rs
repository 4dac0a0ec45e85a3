//! Management: executes commands and queries by NFD's management protocol, as far as `trust/`
//! permits them.
//!
//! | module | verbs |
//! |---|---|
//! | `rib` | `register`, `unregister`, `list` |
//! | `faces` | `create`, `update`, `destroy`, `list`, `query`, `events` |
//! | `fib`, `cs`, `status` | `list`, `info`, `general` |
//! | `strategy-choice` | `set`, `unset`, `list` |

use crate::faces::{Face, Faces, Handler, Lost, Persistence, Remote};
use crate::forwarder::{Drop, FaceUse, Strategy};
use crate::packets::management::{
    CHILD_INHERIT, Command, ControlParameters, ControlResponse, CsInfo, FaceFilter, FibEntry,
    GeneralStatus, LOCAL_FIELDS, ORIGIN_APP, RibEntry, Route as RouteStatus, STRATEGY_PREFIX,
    StrategyChoice,
};
use crate::packets::{Headers, Interest, NameBuf, NewData};

use crate::forwarder::design::Access;
use crate::relay::batch::ShardReport;
use crate::relay::core::Core;
use crate::relay::events::FaceEvents;
use crate::relay::requests::REQUEST;
use crate::relay::rib::Route;
use crate::relay::status::status_of;
use crate::relay::trust::{ROUTES_MAX, Received, RefusedCommand};
use ringtap_base::now_ns;

/// Status code and text of a refused command. Texts of NFD are unchanged.
type Refusal = (u64, &'static str);

const WRONG: Refusal = (400, "ControlParameters is incorrect");

/// Status code and text for a face that exists already; the parameters of the response name it.
const FACE_EXISTS: Refusal = (409, "Face with remote URI already exists");

/// A property that this face cannot have. NFD's text.
const INVALID_PROPERTIES: Refusal = (409, "Invalid properties specified");

/// The result of a command.
type CommandResult = Result<ControlParameters, Refusal>;

impl<A: Access> Core<A> {
    /// Executes the management request of an Interest, and sends the response to the face `from`.
    pub(crate) fn manage(
        &mut self,
        faces: &mut Faces,
        from: u32,
        headers: &Headers,
        interest: &Interest<'_>,
    ) {
        self.requests.spend(REQUEST);
        if FaceEvents::has(&interest.name) {
            return self.events.take(self.now_ns, faces, from, headers, interest);
        }
        let mut data = Vec::new();
        let is_answered = self.datasets.answer(&interest.name, &mut data)
            || match Command::read(interest) {
                Ok(command) => match self.permit(faces, from, interest, &command) {
                    Ok(()) => self.execute(faces, from, interest, &command, &mut data),
                    Err(refused) => {
                        self.counts.refused[refused as usize] += 1;
                        respond(interest, Err((403, refused.text())), &mut data);
                        true
                    }
                },
                Err(_) => {
                    respond(interest, Err((400, "malformed command")), &mut data);
                    true
                }
            };
        if !is_answered {
            self.counts.unanswered += 1;
            return;
        }
        self.counts.answered += 1;
        let headers = Headers { token: headers.token, ..Headers::default() };
        faces.send(from, &headers, &data);
    }

    /// Checks whether the sender may use a command.
    fn permit(
        &mut self,
        faces: &Faces,
        from: u32,
        interest: &Interest<'_>,
        command: &Command<'_>,
    ) -> Result<(), RefusedCommand> {
        let received = Received {
            face: from,
            is_local: faces.get(from).is_some_and(Face::is_local),
            now_ns: self.now_ns,
            clock_ms: now_ns() / 1_000_000,
        };
        self.trust.check(&received, interest, command)?;
        if !received.is_local && command.verb == b"register" {
            let parameters = command.parameters().unwrap_or_default();
            let origin = parameters.origin.unwrap_or(ORIGIN_APP);
            let changed = parameters.name.as_ref().map(|prefix| (prefix, origin));
            if self.rib.count_of(from, changed) >= ROUTES_MAX {
                return Err(RefusedCommand::RoutesFull);
            }
        }
        Ok(())
    }

    /// Executes a request, and writes the Data of the response to `data`. Returns false without a
    /// response: a name of a data set that is not stored has none.
    fn execute(
        &mut self,
        faces: &mut Faces,
        from: u32,
        interest: &Interest<'_>,
        command: &Command<'_>,
        data: &mut Vec<u8>,
    ) -> bool {
        let mut content = Vec::new();
        match dataset_name(interest, command) {
            Some(name) if self.datasets.answer_current(&name, self.moment(), data) => return true,
            Some(_) => {}
            // Of all others some change what data sets show.
            None => self.changes += 1,
        }
        let result = match (command.module, command.verb) {
            (b"rib", b"register") => self.register(faces, from, command),
            (b"rib", b"unregister") => self.unregister(faces, from, command),
            (b"faces", b"create") => {
                respond_with(interest, self.create(faces, command), data);
                return true;
            }
            (b"faces", b"update") => update_face(faces, from, command),
            (b"faces", b"destroy") => self.destroy(faces, command),
            (b"strategy-choice", b"set") => self.set_strategy_choice(command),
            (b"strategy-choice", b"unset") => self.unset_strategy_choice(command),
            (b"faces", b"query") => {
                let filter = command.rest.first().map(|one| FaceFilter::read(one.value));
                match filter {
                    Some(Ok(filter)) => {
                        self.faces_to(faces, &filter, &mut content);
                        return self.publish(interest, 5, content, data);
                    }
                    _ => Err(WRONG),
                }
            }
            // A longer name refers to an earlier version of a data set, which is no longer stored.
            _ if !command.rest.is_empty() && is_list(command) => return false,
            _ if self.dataset(faces, command, &mut content) => {
                return self.publish(interest, 4, content, data);
            }
            _ => Err((501, "unknown command")),
        };
        respond(interest, result, data);
        true
    }

    /// Writes the data set that a request names; returns false if there is no such data set.
    fn dataset(&mut self, faces: &Faces, command: &Command<'_>, out: &mut Vec<u8>) -> bool {
        match (command.module, command.verb) {
            (b"rib", b"list") => self.rib_to(out),
            (b"fib", b"list") => self.fib_to(out),
            (b"faces", b"list") => self.faces_to(faces, &FaceFilter::default(), out),
            (b"strategy-choice", b"list") => self.strategies_to(out),
            (b"cs", b"info") => self.content_store().write(out),
            (b"status", b"general") => self.status(faces).write(out),
            _ => return false,
        }
        true
    }

    /// Whether a request needs a data set that is not stored.
    pub(crate) fn makes_dataset(&self, interest: &Interest<'_>) -> bool {
        let name = Command::read(interest).ok().and_then(|one| dataset_name(interest, &one));
        name.is_some_and(|name| !self.datasets.is_current(&name, self.moment()))
    }

    /// Publishes a data set under the first `components` components of the Interest's name.
    fn publish(
        &mut self,
        interest: &Interest<'_>,
        components: usize,
        content: Vec<u8>,
        data: &mut Vec<u8>,
    ) -> bool {
        let name = first_components(interest, components);
        // Two data sets of one millisecond must have different versions: the version is the time in
        // milliseconds times 1000, plus a counter.
        let version = now_ns() / 1_000_000 * 1000 + self.counts.answered % 1000;
        self.counts.made += 1;
        self.datasets.publish(name, version, content, self.moment(), data);
        true
    }

    fn register(&mut self, faces: &mut Faces, from: u32, command: &Command<'_>) -> CommandResult {
        let parameters = command.parameters().ok_or(WRONG)?;
        let prefix = parameters.name.clone().ok_or(WRONG)?;
        let face = face_of(&parameters, from)?;
        if faces.get(face).is_none() {
            return Err((410, "Face not found"));
        }
        let route = Route {
            face,
            origin: parameters.origin.unwrap_or(ORIGIN_APP),
            cost: parameters.cost.unwrap_or(0),
            flags: parameters.flags.unwrap_or(CHILD_INHERIT),
            ends_ns: parameters
                .expiration_ms
                .map(|ms| self.now_ns.saturating_add(ms.saturating_mul(1_000_000))),
        };
        if !self.set_route(faces, &prefix, route) {
            return Err((414, "prefix too long: use at most 64 components"));
        }
        Ok(ControlParameters {
            name: Some(prefix),
            face: Some(face.into()),
            origin: Some(route.origin),
            cost: Some(route.cost),
            flags: Some(route.flags),
            expiration_ms: parameters.expiration_ms,
            ..ControlParameters::default()
        })
    }

    fn unregister(&mut self, faces: &mut Faces, from: u32, command: &Command<'_>) -> CommandResult {
        let parameters = command.parameters().ok_or(WRONG)?;
        let prefix = parameters.name.clone().ok_or(WRONG)?;
        let face = face_of(&parameters, from)?;
        let origin = parameters.origin.unwrap_or(ORIGIN_APP);
        self.unset_route(faces, &prefix, face, origin);
        Ok(ControlParameters {
            name: Some(prefix),
            face: Some(face.into()),
            origin: Some(origin),
            ..ControlParameters::default()
        })
    }

    /// Creates a face. As in NFD, a face that exists already is code 409, with its parameters.
    fn create(
        &mut self,
        faces: &mut Faces,
        command: &Command<'_>,
    ) -> Result<ControlResponse, Refusal> {
        let parameters = command.parameters().ok_or(WRONG)?;
        let mut uri = parameters.uri.as_deref().ok_or(WRONG)?.to_owned();
        // NFD passes the interface of an Ethernet face in the local URI.
        let interface =
            parameters.local_uri.as_deref().and_then(|local| local.strip_prefix("dev://"));
        if let (Some(mac), Some(interface)) = (uri.strip_prefix("ether://["), interface) {
            uri = format!("ether://{interface}/{}", mac.trim_end_matches(']'));
        }
        // The same for the interface of a multicast group.
        if let (true, Some(interface)) = (uri.starts_with("udp"), interface) {
            uri = format!("{uri}/{interface}");
        }
        // The resolution of a host name would block the forwarder.
        let remote = Remote::from_numeric(&uri).map_err(|_| {
            (400, "invalid URI: use a numeric address, as in udp4://192.0.2.1:6363, tcp4://192.0.2.1:6363 or ether://[02:00:00:00:00:01]")
        })?;
        let persistence = match parameters.persistency {
            None | Some(0) => Persistence::Persistent,
            Some(2) => Persistence::Permanent,
            _ => return Err((406, "invalid persistency: use 0 (persistent) or 2 (permanent)")),
        };
        let (face, is_new) = match faces.add(&remote, persistence) {
            Ok(added) => added,
            Err(error) => {
                let text = format!("the face cannot be created: {error}");
                return Ok(ControlResponse { code: 504, text, parameters: None });
            }
        };
        if is_new {
            self.up(faces, face);
        }
        let created = faces.get(face).ok_or((504, "the face cannot be created"))?;
        self.events.describe(face, created);
        let status = status_of(face, created, FaceUse::default());
        let parameters = ControlParameters {
            face: Some(status.face),
            uri: Some(status.uri),
            local_uri: Some(status.local_uri),
            persistency: Some(status.persistency),
            flags: Some(status.flags),
            mtu: status.mtu,
            ..ControlParameters::default()
        };
        let (code, text) = if is_new { (200, "OK") } else { FACE_EXISTS };
        Ok(ControlResponse { code, text: text.into(), parameters: Some(parameters) })
    }

    fn destroy(&mut self, faces: &mut Faces, command: &Command<'_>) -> CommandResult {
        let parameters = command.parameters().ok_or(WRONG)?;
        let face = parameters.face.and_then(|face| u32::try_from(face).ok()).ok_or(WRONG)?;
        // If the face does not exist, the command succeeds: it is closed already.
        if faces.close(face) {
            self.down(faces, face);
        }
        Ok(ControlParameters { face: parameters.face, ..ControlParameters::default() })
    }

    fn set_strategy_choice(&mut self, command: &Command<'_>) -> CommandResult {
        let parameters = command.parameters().ok_or(WRONG)?;
        let prefix = parameters.name.clone().ok_or(WRONG)?;
        let requested = parameters.strategy.ok_or(WRONG)?;
        let strategy = Strategy::ALL.into_iter().find(|&one| {
            let name = strategy_name(one);
            requested.as_bytes().starts_with(name.as_bytes())
                && requested.as_name().components().count() <= 5
        });
        let strategy = strategy.ok_or((404, "Unknown strategy"))?;
        if !self.set_strategy(&prefix, strategy) {
            return Err((414, "prefix too long: use at most 64 components"));
        }
        let strategy = Some(strategy_name(strategy));
        Ok(ControlParameters { name: Some(prefix), strategy, ..ControlParameters::default() })
    }

    fn unset_strategy_choice(&mut self, command: &Command<'_>) -> CommandResult {
        let parameters = command.parameters().ok_or(WRONG)?;
        let prefix = parameters.name.clone().ok_or(WRONG)?;
        if prefix.as_bytes().is_empty() {
            return Err((400, "the strategy of / cannot be removed: set another one"));
        }
        self.workers.unset_strategy(&prefix);
        self.strategies.remove(&prefix);
        Ok(ControlParameters { name: Some(prefix), ..ControlParameters::default() })
    }

    /// Writes the status of all faces that match the filter.
    fn faces_to(&mut self, faces: &Faces, filter: &FaceFilter, out: &mut Vec<u8>) {
        self.requests.spend(faces.len() as u64);
        for (number, face) in faces.iter() {
            let status = status_of(number, face, self.workers.face_use(number));
            if filter.matches(&status) {
                status.write(out);
            }
        }
    }

    /// Writes the data set `rib/list`.
    fn rib_to(&mut self, out: &mut Vec<u8>) {
        self.requests.spend(self.rib.len() as u64);
        for (prefix, entry) in self.rib.iter() {
            let left_ms = |ends_ns: u64| ends_ns.saturating_sub(self.now_ns) / 1_000_000;
            let route = |route: &Route| RouteStatus {
                face: route.face.into(),
                origin: route.origin,
                cost: route.cost,
                flags: route.flags,
                expiration_ms: route.ends_ns.map(left_ms),
            };
            let routes = entry.routes.iter().map(route).collect();
            RibEntry { name: prefix.clone(), routes }.write(out);
        }
    }

    /// Writes the data set `fib/list`.
    fn fib_to(&mut self, out: &mut Vec<u8>) {
        self.requests.spend(self.rib.len() as u64);
        for (prefix, entry) in self.rib.iter() {
            let next_hops = entry.next_hops.iter().map(|&(face, cost)| (face.into(), cost));
            FibEntry { name: prefix.clone(), next_hops: next_hops.collect() }.write(out);
        }
    }

    /// Writes the data set `strategy-choice/list`.
    fn strategies_to(&mut self, out: &mut Vec<u8>) {
        self.requests.spend(self.strategies.len() as u64);
        for (prefix, &strategy) in &self.strategies {
            StrategyChoice { name: prefix.clone(), strategy: strategy_name(strategy) }.write(out);
        }
    }

    /// The data set `cs/info`.
    fn content_store(&self) -> CsInfo {
        let ShardReport { counters, kept, .. } = self.workers.total();
        CsInfo {
            capacity: self.cs_capacity as u64,
            flags: if self.cs_capacity > 0 { 3 } else { 0 },
            entries: kept as u64,
            hits: counters.cs_hits,
            misses: counters.cs_misses,
        }
    }

    /// The data set `status/general`.
    fn status(&mut self, faces: &Faces) -> GeneralStatus {
        // Counters of all faces are added.
        self.requests.spend(faces.len() as u64 / 16);
        let ShardReport { counters, pending, kept, .. } = self.workers.total();
        GeneralStatus {
            version: format!("ringtap {}", self.version),
            started_ms: self.began_ms,
            now_ms: now_ns() / 1_000_000,
            fib_entries: self.rib.iter().count() as u64,
            pit_entries: pending as u64,
            cs_entries: kept as u64,
            in_interests: counters.interests_in,
            in_data: counters.data_in,
            in_nacks: counters.nacks_in,
            out_interests: counters.interests_out,
            out_data: counters.data_out,
            out_nacks: counters.nacks_out,
            satisfied: counters.satisfied,
            unsatisfied: counters.unsatisfied,
            evicted_faces: faces.evicted(),
            refused_frames: faces.total().lost(Lost::NoFace),
            refused_interests: counters.dropped(Drop::FaceShare),
            refused_commands: self.counts.refused.iter().sum(),
            ..GeneralStatus::default()
        }
    }
}

/// Changes the flags of a face; without a number, of the sender's. With the flag LocalFieldsEnabled a
/// local program, such as a routing daemon, receives the number of the face over which a neighbour's
/// packet came, in the link header IncomingFaceId.
pub(crate) fn update_face(faces: &mut Faces, from: u32, command: &Command<'_>) -> CommandResult {
    let parameters = command.parameters().ok_or(WRONG)?;
    let number = face_of(&parameters, from)?;
    let (flags, mask) = match (parameters.flags, parameters.mask) {
        (Some(flags), Some(mask)) => (flags, mask),
        (None, None) => (0, 0),
        _ => return Err(WRONG),
    };
    let face = faces.get(number).ok_or((404, "Specified face does not exist"))?;
    let is_unchanged = |requested: Option<u64>, now: u64| requested.is_none_or(|it| it == now);
    let persistency = face.persistence().number();
    if flags & mask & !LOCAL_FIELDS != 0
        || !is_unchanged(parameters.persistency, persistency)
        || !is_unchanged(parameters.mtu, face.mtu() as u64)
    {
        return Err(INVALID_PROPERTIES);
    }
    let enabled = flags & LOCAL_FIELDS != 0;
    let is_set = mask & LOCAL_FIELDS == 0 || faces.table.set_local_fields(number, enabled);
    // Disabling what a face cannot have changes nothing.
    if !is_set && enabled {
        return Err(INVALID_PROPERTIES);
    }
    let has_local_fields = faces.get(number).is_some_and(|face| face.has_local_fields());
    Ok(ControlParameters {
        face: Some(number.into()),
        persistency: Some(persistency),
        flags: Some(if has_local_fields { LOCAL_FIELDS } else { 0 }),
        ..ControlParameters::default()
    })
}

/// Whether the verb names a data set.
fn is_list(command: &Command<'_>) -> bool {
    matches!(command.verb, b"list" | b"info" | b"general")
}

/// The name of the requested data set, without a version. `None` for commands, and for versions and
/// segments.
fn dataset_name(interest: &Interest<'_>, command: &Command<'_>) -> Option<NameBuf> {
    let components = match command.rest.is_empty() {
        true if is_list(command) => 4,
        false if (command.module, command.verb) == (b"faces", b"query") => 5,
        _ => return None,
    };
    Some(first_components(interest, components))
}

/// The first components of an Interest's name.
fn first_components(interest: &Interest<'_>, count: usize) -> NameBuf {
    let mut name = NameBuf::of(interest.name);
    if let Some(end) = interest.name.components().offsets().nth(count) {
        name.truncate(end);
    }
    name
}

/// The face that a command applies to: the sender's, unless the parameters name another one.
fn face_of(parameters: &ControlParameters, from: u32) -> Result<u32, Refusal> {
    match parameters.face {
        None | Some(0) => Ok(from),
        Some(face) => u32::try_from(face).map_err(|_| (410, "Face not found")),
    }
}

/// The name of a strategy in the management protocol.
fn strategy_name(strategy: Strategy) -> NameBuf {
    let mut name: NameBuf = STRATEGY_PREFIX.parse().unwrap_or_default();
    name.push(strategy.name().as_bytes());
    name
}

/// Appends a Data with the response to a command.
fn respond(interest: &Interest<'_>, result: CommandResult, data: &mut Vec<u8>) {
    let ok =
        |parameters| ControlResponse { code: 200, text: "OK".into(), parameters: Some(parameters) };
    respond_with(interest, result.map(ok), data);
}

/// Appends a Data with a response, or with the code and text of a refused command.
fn respond_with(
    interest: &Interest<'_>,
    result: Result<ControlResponse, Refusal>,
    data: &mut Vec<u8>,
) {
    let refused =
        |(code, text): Refusal| ControlResponse { code, text: text.into(), parameters: None };
    let response = result.unwrap_or_else(refused);
    let mut content = Vec::new();
    response.write(&mut content);
    NewData { name: interest.name, freshness_ms: Some(1), content: &content }.write(data);
}
