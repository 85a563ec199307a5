// The sync spec runner: runs one JSON case of the official sync specs. It drives the client's sync engine,
// simulates the server's side of the watch stream and the write stream, and compares received events and
// active targets with the expected ones.

import FirestoreModel
import Foundation

@testable import FirebaseFirestore

struct SyncSpecRunner {
  typealias JSON = [String: Any]

  static let database = DatabaseName(project: "test-project")

  private struct Event {
    let query: String
    let snapshot: ViewSnapshot?
    let error: FirestoreError?
  }

  private let steps: [JSON]
  private let config: JSON
  private let fixture: CacheFixture
  private var engine: SyncEngine
  private var nextID = 1
  private var listeners: [ListenerID: String] = [:]
  private var listenerOfTarget: [String: ListenerID] = [:]
  private var receivedEvents: [Event] = []
  private var inSyncCount = 0
  private var inSyncListeners: [ListenerID] = []
  private var completedWaiterCount = 0
  private var waiters: Set<CompletionID> = []
  private var writesOfCompletion: [CompletionID: String] = [:]
  private var acknowledged: [String] = []
  private var rejected: [String] = []
  private var watched: [TargetID: TargetData] = [:]
  private var outstanding: [[Write]] = []
  private var watchRequestCount = 0
  private var writeRequestCount = 0
  private var timers: [EngineTimer: Double] = [:]
  private var user: UserID = nil
  private var expectedTargets: JSON = [:]
  private var expectedLimbo: Set<String> = []
  private var expectedQueued: [String] = []
  private var checksLimbo = false

  init(_ body: JSON, on kind: CacheKind) throws {
    steps = body["steps"] as? [JSON] ?? []
    config = body["config"] as? JSON ?? [:]
    fixture = CacheFixture(kind)
    engine = SyncSpecRunner.engine(try SyncSpecRunner.open(fixture, config), config)
  }

  private static func open(_ fixture: CacheFixture, _ config: JSON) throws -> FailingPersistence {
    let isEager = config["useEagerGCForMemory"] as? Bool ?? true
    return FailingPersistence(try fixture.open(isEager: isEager, database: database))
  }

  private static func engine(_ persistence: FailingPersistence, _ config: JSON) -> SyncEngine {
    let limit = config["maxConcurrentLimboResolutions"] as? Int ?? 100
    var engine = SyncEngine(persistence: persistence, seed: 1, maxLimboResolutions: limit)
    engine.enableNetwork()
    return engine
  }

  /// The reason why a case does not apply to this client; nil if it does. Only one process at a time can use
  /// a cache, so cases with several clients on one cache are skipped.
  static func reasonToSkip(_ body: JSON, on kind: CacheKind) -> String? {
    let tags = body["tags"] as? [String] ?? []
    let config = body["config"] as? JSON ?? [:]
    let steps = Set((body["steps"] as? [JSON] ?? []).flatMap(\.keys))
    if (config["numClients"] as? Int ?? 1) > 1 || tags.contains("multi-client") {
      return "several clients on one cache"
    }
    if steps.contains("applyClientState") { return "several clients on one cache" }
    if kind == .disk, tags.contains("eager-gc") { return "eager collection, which only memory has" }
    return nil
  }

  mutating func run() -> String? {
    defer { engine.store.persistence.close() }
    drainActions()
    for (number, step) in steps.enumerated() {
      if let problem = runStep(step) ?? check(step) { return "step \(number): \(problem)" }
    }
    return nil
  }

  // MARK: Steps

  private mutating func runStep(_ step: JSON) -> String? {
    for (kind, value) in step where !kind.hasPrefix("expected") && kind != "clientIndex" {
      if let problem = runStep(kind, value) { return problem }
      drainActions()
    }
    return nil
  }

  private mutating func runStep(_ kind: String, _ value: Any) -> String? {
    switch kind {
    case "drainQueue": break
    case "userListen": listen(value as? JSON ?? [:])
    case "userUnlisten":
      let parts = value as? [Any] ?? []
      let key = SpecReader.key(parts.last as? JSON ?? [:])
      if let id = listenerOfTarget.removeValue(forKey: key) {
        listeners[id] = nil
        engine.unlisten(id)
      }
    case "userSet", "userPatch", "userDelete": write(kind, value)
    case "watchAck": receive(.target(.init(kind: .add, targets: SpecReader.targets(value))))
    case "watchCurrent":
      let parts = value as? [Any] ?? []
      receive(
        .target(
          .init(
            kind: .current, targets: SpecReader.targets(parts.first ?? []),
            resumeToken: Array((parts.last as? String ?? "").utf8))))
    case "watchReset": receive(.target(.init(kind: .reset, targets: SpecReader.targets(value))))
    case "watchRemove":
      let body = value as? JSON ?? [:]
      let cause = (body["cause"] as? JSON).map(SpecReader.error)
      let ids = SpecReader.targets(body["targetIds"] ?? [])
      receive(.target(.init(kind: .remove, targets: ids, cause: cause)))
      if cause != nil { for id in ids { watched[id] = nil } }
    case "watchSnapshot":
      let body = value as? JSON ?? [:]
      let ids = SpecReader.targets(body["targetIds"] ?? [])
      receive(
        .target(
          .init(
            kind: .noChange, targets: ids, resumeToken: Array((body["resumeToken"] as? String ?? "").utf8),
            snapshotVersion: ids.isEmpty ? SpecReader.version(body["version"]) : nil)))
    case "watchEntity": for change in SpecReader.entities(value as? JSON ?? [:]) { receive(change) }
    case "watchFilter":
      let body = value as? JSON ?? [:]
      let keys = body["keys"] as? [String] ?? []
      for id in SpecReader.targets(body["targetIds"] ?? []) {
        receive(.filter(id, count: keys.count, names: SpecReader.bloomFilter(body["bloomFilter"])))
      }
    case "watchStreamClose":
      let body = value as? JSON ?? [:]
      watched = [:]
      engine.watchStreamClosed(engine.watch.number, SpecReader.error(body["error"] as? JSON ?? [:]))
      drainActions()
      if body["runBackoffTimer"] as? Bool == true { fire(.backoff(.watch)) }
    case "writeAck":
      let body = value as? JSON ?? [:]
      guard !outstanding.isEmpty else { return "no write to acknowledge" }
      let writes = outstanding.removeFirst()
      let version = SpecReader.version(body["version"])
      engine.writeAcknowledged(
        engine.writing.number, results: writes.map { _ in WriteResult(updateTime: version) },
        commitTime: version)
    case "failWrite":
      let body = value as? JSON ?? [:]
      guard !outstanding.isEmpty else { return "no write to fail" }
      outstanding = []
      engine.writeStreamClosed(engine.writing.number, SpecReader.error(body["error"] as? JSON ?? [:]))
      drainActions()
      if body["keepInQueue"] as? Bool == true { fire(.backoff(.write)) }
    case "enableNetwork":
      if value as? Bool == true { engine.enableNetwork() } else { engine.disableNetwork() }
    case "runTimer": return run(timer: value as? String ?? "")
    case "changeUser":
      user = value as? String
      engine.switchUser(to: user)
    case "addSnapshotsInSyncListener":
      let id = newListener("")
      inSyncListeners.append(id)
      engine.addInSyncListener(id)
    case "removeSnapshotsInSyncListener":
      if let id = inSyncListeners.popLast() { engine.removeInSyncListener(id) }
    case "waitForPendingWrites":
      let id = CompletionID(number: nextID)
      nextID += 1
      waiters.insert(id)
      engine.waitForPendingWrites(id)
    case "restart", "clearPersistence", "shutdown": return restart(kind)
    case "loadBundle": return load(bundle: value as? String ?? "")
    case "triggerLruGC": try? engine.store.collectGarbage(above: value as? Int ?? 0, share: 1)
    case "failDatabase": setFailingOperations(value)
    default: return "unknown step \(kind)"
    }
    return nil
  }

  /// Makes operations of the cache fail: the named operations, all operations for true, or none for false.
  private mutating func setFailingOperations(_ value: Any) {
    guard var persistence = engine.store.persistence as? FailingPersistence else { return }
    let all = value as? Bool == true
    let names = Set(value as? [String] ?? [])
    persistence.fails = { all || names.contains($0.rawValue) }
    engine.store.persistence = persistence
  }

  private mutating func newListener(_ key: String) -> ListenerID {
    let id = ListenerID(number: nextID)
    nextID += 1
    listeners[id] = key
    return id
  }

  private mutating func listen(_ body: JSON) {
    let json = body["query"] as? JSON ?? [:]
    let key = SpecReader.key(json)
    let id = newListener(key)
    listenerOfTarget[key] = id
    let listenOptions = body["options"] as? JSON ?? [:]
    let options = ListenerOptions(
      includeMetadataChanges: listenOptions["includeMetadataChanges"] as? Bool ?? true,
      // The official test runners also ignore this option of a case.
      waitForSyncWhenOnline: false, cacheOnly: listenOptions["source"] as? String == "cache")
    engine.listen(id, to: SpecReader.query(json), options: options)
  }

  private mutating func write(_ kind: String, _ value: Any) {
    let parts = value as? [Any] ?? [value]
    let path = parts.first as? String ?? ""
    let name = SpecReader.name(path)
    let json = parts.count > 1 ? parts[1] as? JSON ?? [:] : [:]
    let write: Write =
      switch kind {
      case "userSet": Write(.update(name, fields: SpecReader.fields(json)))
      case "userPatch": SpecReader.patch(name, json)
      default: Write(.delete(name))
      }
    let id = CompletionID(number: nextID)
    nextID += 1
    writesOfCompletion[id] = path
    engine.write([write], at: .epoch, completion: id)
  }

  private mutating func load(bundle text: String) -> String? {
    do throws(FirestoreError) {
      var loader = BundleLoader(database: SyncSpecRunner.database)
      loader.append(text.utf8)
      while try loader.step() {}
      let bundle = try loader.finish()
      do throws(PersistenceFailure) {
        if try !engine.store.hasBundle(asNewAs: bundle.metadata) { try engine.load(bundle) }
      } catch {
        return "the bundle is not stored: \(error)"
      }
      return nil
    } catch {
      return "the bundle is rejected: \(error)"
    }
  }

  private mutating func receive(_ change: WatchChange) {
    engine.watchReceived(engine.watch.number, change)
    drainActions()
  }

  private mutating func restart(_ kind: String) -> String? {
    _ = engine.shutDown()
    drainActions()
    if kind == "shutdown" { return nil }
    guard var persistence = engine.store.persistence as? FailingPersistence else { return "no persistence" }
    do {
      if kind == "clearPersistence" {
        persistence.close()
        try? FileManager.default.removeItem(at: fixture.folder)
        persistence = try SyncSpecRunner.open(fixture, config)
      } else if fixture.kind == .disk {
        persistence.close()
        persistence = try SyncSpecRunner.open(fixture, config)
      }
      persistence.fails = { _ in false }
      try persistence.begin(.changeUser)
      persistence.switchUser(to: user)
      try persistence.commit { _ in false }
    } catch {
      return "the cache cannot be opened: \(error)"
    }
    timers = [:]
    watched = [:]
    outstanding = []
    listenerOfTarget = [:]
    engine = SyncSpecRunner.engine(persistence, config)
    return nil
  }

  // MARK: Timers

  private mutating func fire(_ timer: EngineTimer) {
    guard timers.removeValue(forKey: timer) != nil else { return }
    engine.timerFired(timer)
    drainActions()
  }

  private mutating func run(timer name: String) -> String? {
    let last: EngineTimer? =
      switch name {
      case "online_state_timeout": .onlineState
      case "listen_stream_idle": .idle(.watch)
      case "write_stream_idle": .idle(.write)
      case "listen_stream_connection_backoff": .backoff(.watch)
      case "write_stream_connection_backoff": .backoff(.write)
      case "async_queue_retry": .recovery
      case "all", "client_metadata_refresh": nil
      default: nil
      }
    if last == nil, name != "all" { return "unknown timer \(name)" }
    for (timer, _) in timers.sorted(by: { $0.value < $1.value }) {
      fire(timer)
      if timer == last { break }
    }
    return nil
  }

  // MARK: Environment

  /// Performs the engine's actions until none is pending. Connections and handshakes succeed immediately.
  private mutating func drainActions() {
    while true {
      let actions = engine.takeActions()
      if actions.isEmpty { return }
      for action in actions { perform(action) }
    }
  }

  private mutating func perform(_ action: EngineAction) {
    switch action {
    case .snapshot(let id, let snapshot):
      if let key = listeners[id] { receivedEvents.append(Event(query: key, snapshot: snapshot, error: nil)) }
    case .failure(let id, let error):
      if let key = listeners.removeValue(forKey: id) {
        listenerOfTarget[key] = nil
        receivedEvents.append(Event(query: key, snapshot: nil, error: error))
      }
    case .inSync: inSyncCount += 1
    case .completed(let id, let error):
      if waiters.remove(id) != nil {
        completedWaiterCount += 1
      } else if let path = writesOfCompletion.removeValue(forKey: id) {
        if error == nil { acknowledged.append(path) } else { rejected.append(path) }
      }
    case .connect(.watch, let number):
      watched = [:]
      engine.watchStreamOpened(number)
    case .connect(.write, let number):
      outstanding = []
      engine.writeStreamOpened(number)
    case .disconnect(.watch, _): watched = [:]
    case .disconnect(.write, _): outstanding = []
    case .send(_, .addTarget(let data)):
      watchRequestCount += 1
      watched[data.id] = data
    case .send(_, .removeTarget(let id)):
      watchRequestCount += 1
      watched[id] = nil
    case .send(_, .handshake):
      writeRequestCount += 1
      engine.writeHandshakeDone(engine.writing.number)
    case .send(_, .writes(let writes)):
      writeRequestCount += 1
      if !writes.isEmpty { outstanding.append(writes) }
    case .startTimer(let timer, let seconds): timers[timer] = seconds
    case .stopTimer(let timer): timers[timer] = nil
    case .renewToken, .warn: break
    }
  }

  // MARK: Checks

  private mutating func check(_ step: JSON) -> String? {
    defer {
      receivedEvents = []
      inSyncCount = 0
      completedWaiterCount = 0
      acknowledged = []
      rejected = []
    }
    let state = step["expectedState"] as? JSON
    if let targets = state?["activeTargets"] as? JSON { expectedTargets = targets }
    if let limbo = state?["activeLimboDocs"] as? [String] {
      expectedLimbo = Set(limbo)
      checksLimbo = true
    }
    if let queued = state?["enqueuedLimboDocs"] as? [String] { expectedQueued = queued }
    // A case that expects active targets requires an open watch stream, so a pending back-off ends now.
    if !expectedTargets.isEmpty, !engine.watch.isOpen { fire(.backoff(.watch)) }
    return checkEvents(step) ?? checkState(state)
  }

  private func checkEvents(_ step: JSON) -> String? {
    let expected = (step["expectedSnapshotEvents"] as? [JSON] ?? []).map(SpecReader.describeEvent).sorted()
    let actual = receivedEvents.map { SpecReader.describeEvent(query: $0.query, $0.snapshot, $0.error) }
      .sorted()
    if expected != actual { return "events expected:\n\(expected)\n     received:\n\(actual)" }
    let expectedInSync = step["expectedSnapshotsInSyncEvents"] as? Int ?? 0
    if expectedInSync != inSyncCount { return "in-sync events \(inSyncCount), expected \(expectedInSync)" }
    let expectedWaits = step["expectedWaitForPendingWritesEvents"] as? Int ?? 0
    if expectedWaits != completedWaiterCount {
      return "waits done \(completedWaiterCount), expected \(expectedWaits)"
    }
    return nil
  }

  private func checkState(_ state: JSON?) -> String? {
    if let callbacks = state?["userCallbacks"] as? JSON {
      let done = callbacks["acknowledgedDocs"] as? [String] ?? []
      let expectedRejected = callbacks["rejectedDocs"] as? [String] ?? []
      if done != acknowledged || expectedRejected != rejected {
        return "callbacks \(acknowledged) \(rejected), expected \(done) \(expectedRejected)"
      }
    }
    if let count = state?["numOutstandingWrites"] as? Int, count != outstanding.count {
      return "outstanding writes \(outstanding.count), expected \(count)"
    }
    if let count = state?["watchStreamRequestCount"] as? Int, count != watchRequestCount {
      return "watch requests \(watchRequestCount), expected \(count)"
    }
    if let count = state?["writeStreamRequestCount"] as? Int, count != writeRequestCount {
      return "write requests \(writeRequestCount), expected \(count)"
    }
    let limbo = Set(engine.limboTargets.keys.map(\.path.description))
    if checksLimbo, limbo != expectedLimbo { return "limbo \(limbo), expected \(expectedLimbo)" }
    let queued = engine.enqueuedLimbo.map(\.path.description)
    if Set(queued) != Set(expectedQueued) { return "queued limbo \(queued), expected \(expectedQueued)" }
    return engine.isNetworkEnabled ? checkTargets() : nil
  }

  private func checkTargets() -> String? {
    let expectedIDs = Set(expectedTargets.keys.compactMap { TargetID($0) })
    if Set(watched.keys) != expectedIDs {
      return "watched targets \(watched.keys.sorted()), expected \(expectedIDs.sorted())"
    }
    for (text, value) in expectedTargets {
      guard let id = TargetID(text), let data = watched[id], let body = value as? JSON,
        let query = (body["queries"] as? [JSON])?.first
      else { continue }
      if SpecReader.query(query).target != data.target { return "target \(id) is \(data.target)" }
      let token = String(decoding: data.resumeToken, as: UTF8.self)
      if let expected = body["resumeToken"] as? String, token != expected {
        return "target \(id) resumes from '\(token)', expected '\(expected)'"
      }
      if let expected = body["readTime"], data.snapshotVersion != SpecReader.version(expected) {
        return "target \(id) is at \(data.snapshotVersion.microseconds)"
      }
      let purpose = body["targetPurpose"] as? String
      if SpecReader.purpose(purpose) != data.purpose { return "target \(id) has purpose \(data.purpose)" }
    }
    return nil
  }
}
