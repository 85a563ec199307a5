// Opens the namespaces of one store as Realtime Databases. The engine is independent of wire formats and of
// the network.

package import Access
import Locking
package import OrderedStore
package import RealtimeModel

/// The Realtime Databases of a store.
package final class RealtimeEngine: Sendable {
  private typealias Opening = Task<Result<RealtimeDatabase, RealtimeError>, Never>

  /// The state of a namespace. A namespace with rows stays open. A namespace without rows is released after its last
  /// use, so that requests for unknown names take neither disk space nor memory.
  private enum Entry {
    case opening(Opening)
    case open(RealtimeDatabase)
    case provisional(WeakDatabase)
  }

  private struct WeakDatabase {
    weak var database: RealtimeDatabase?
  }

  private let store: any OrderedStore
  /// The policies of all namespaces.
  package let policies: PolicyDirectory<RealtimeAccess>
  private let rules: RulesCompiler?
  private let project: @Sendable (String) -> String
  /// The limits of the data model.
  package let limits: RealtimeLimits
  private let cacheBytes: Int
  private let staging: StagingLimits
  private let report: @Sendable (String) -> Void
  private let now: @Sendable () -> Int64
  private let entries = Guarded<[String: Entry]>([:])
  let revocations = RevocationCheck()
  /// The namespaces whose rules may deny something, as ``findRestrictedNamespaces()`` found them.
  private let restrictedNamespaces = Guarded<Set<String>>([])
  /// The engine creates the pool before the first request. Later the system might have no threads left, which would
  /// end the process.
  private let threads = ThreadPool(threads: 2)
  private let decisionLimit = ConcurrencyLimit(WriteDecision.maximumConcurrency)
  private let pushIDs = Guarded(PushIDGenerator())

  /// Prefix of database names in the store's catalogue.
  static let cataloguePrefix = "realtime/"

  /// Creates the engine without opening a namespace.
  ///
  /// - Parameters:
  ///   - policies: decide access to databases without enforced rules.
  ///   - rules: makes the policies that enforce stored rules; nil if these only declare indexes.
  ///   - project: returns the project of a namespace.
  ///   - limits: the limits of the data model.
  ///   - cacheBytes: approximate maximum bytes of cached subtrees in one namespace.
  ///   - report: reports events that an operator must know; called on any thread.
  ///   - now: the clock in milliseconds since the Unix epoch. Push ids, rules of reads, and expiries use it.
  package convenience init(
    store: any OrderedStore, policies: PolicyDirectory<RealtimeAccess>, rules: RulesCompiler? = nil,
    project: @escaping @Sendable (_ namespace: String) -> String = { $0 },
    limits: RealtimeLimits = .standard,
    cacheBytes: Int = 256 << 20, report: @escaping @Sendable (String) -> Void = { _ in },
    now: @escaping @Sendable () -> Int64 = SystemTime.milliseconds
  ) {
    self.init(
      store: store, policies: policies, rules: rules, project: project, limits: limits,
      cacheBytes: cacheBytes,
      staging: .standard, report: report, now: now)
  }

  /// Creates an engine with one policy for all namespaces.
  package convenience init(
    store: any OrderedStore, policy: any AccessPolicy<RealtimeAccess>, rules: RulesCompiler? = nil,
    limits: RealtimeLimits = .standard, cacheBytes: Int = 256 << 20,
    report: @escaping @Sendable (String) -> Void = { _ in },
    now: @escaping @Sendable () -> Int64 = SystemTime.milliseconds
  ) {
    self.init(
      store: store, policies: PolicyDirectory(default: policy), rules: rules, limits: limits,
      cacheBytes: cacheBytes, report: report, now: now)
  }

  /// Creates an engine with one policy for all namespaces and custom limits for large values.
  convenience init(
    store: any OrderedStore, policy: any AccessPolicy<RealtimeAccess>, limits: RealtimeLimits = .standard,
    cacheBytes: Int = 256 << 20, staging: StagingLimits,
    report: @escaping @Sendable (String) -> Void = { _ in },
    now: @escaping @Sendable () -> Int64 = SystemTime.milliseconds
  ) {
    self.init(
      store: store, policies: PolicyDirectory(default: policy), limits: limits, cacheBytes: cacheBytes,
      staging: staging, report: report, now: now)
  }

  /// Creates an engine with custom limits for large values.
  init(
    store: any OrderedStore, policies: PolicyDirectory<RealtimeAccess>, rules: RulesCompiler? = nil,
    project: @escaping @Sendable (_ namespace: String) -> String = { $0 },
    limits: RealtimeLimits = .standard, cacheBytes: Int = 256 << 20, staging: StagingLimits,
    report: @escaping @Sendable (String) -> Void = { _ in },
    now: @escaping @Sendable () -> Int64 = SystemTime.milliseconds
  ) {
    self.staging = staging
    self.report = report
    self.store = store
    self.policies = policies
    self.rules = rules
    self.project = project
    self.limits = limits
    self.cacheBytes = cacheBytes
    self.now = now
  }

  /// Opens a namespace.
  ///
  /// A new namespace is created by its first permitted write. Until then it is empty, and in memory only
  /// while it is in use. Sessions that a killed server left open are ended first: their onDisconnect writes
  /// are durable when this returns.
  ///
  /// - Throws: ``RealtimeModel/RealtimeError`` for a bad name, or if the store cannot open it.
  package func database(_ namespace: String) async throws(RealtimeError) -> RealtimeDatabase {
    guard RealtimeEngine.isValid(namespace) else {
      throw RealtimeError(.failure, "Invalid namespace: \"\(namespace)\"")
    }
    let (known, opening) = entries.withLock { entries -> (RealtimeDatabase?, Opening?) in
      switch entries[namespace] {
      case .open(let database): return (database, nil)
      case .provisional(let entry): if let database = entry.database { return (database, nil) }
      case .opening(let opening): return (nil, opening)
      case nil: break
      }
      let opening = Opening { await self.open(namespace) }
      entries[namespace] = .opening(opening)
      return (nil, opening)
    }
    if let known { return known }
    guard let opening else { throw RealtimeError(.failure, "internal error") }
    return try await opening.value.get()
  }

  /// The namespace if it is open already.
  package func openDatabase(_ namespace: String) -> RealtimeDatabase? {
    entries.withLock { entries in
      switch entries[namespace] {
      case .open(let database): database
      case .provisional(let entry): entry.database
      case .opening, nil: nil
      }
    }
  }

  /// The namespaces that are open.
  var openDatabases: [RealtimeDatabase] {
    entries.withLock { entries in
      entries.values.compactMap { entry in
        switch entry {
        case .open(let database): database
        case .provisional(let entry): entry.database
        case .opening: nil
        }
      }
    }
  }

  /// Number of namespaces in memory.
  var openCount: Int { entries.withLock { $0.count } }

  private func open(_ namespace: String) async -> Result<RealtimeDatabase, RealtimeError> {
    do {
      let rows = try await DatabaseRows(named: Self.cataloguePrefix + namespace, in: store, now: now)
      let database = try await RealtimeDatabase(
        namespace: namespace, project: project(namespace), rows: rows, policies: policies.slot(of: namespace),
        rules: rules, revocations: revocations,
        limits: limits, cacheBytes: cacheBytes, now: now, threads: threads,
        decisionLimit: decisionLimit, staging: staging, report: report,
        created: { [weak self] in self?.keepOpen(namespace) },
        released: { [weak self] in self?.release(namespace) })
      entries.withLock { entries in
        entries[namespace] =
          database.exists ? .open(database) : .provisional(WeakDatabase(database: database))
      }
      return .success(database)
    } catch {
      entries.withLock { $0[namespace] = nil }
      return .failure(RealtimeError(storeError: error))
    }
  }

  /// Keeps a namespace open once its first write has created it. The operation of that write still retains the
  /// database.
  private func keepOpen(_ namespace: String) {
    entries.withLock { entries in
      if case .provisional(let entry)? = entries[namespace], let database = entry.database {
        entries[namespace] = .open(database)
      }
    }
  }

  /// Removes a namespace without rows after its last use, unless another request has opened it again.
  private func release(_ namespace: String) {
    // The reference is released after the lock, because releasing the database may take the lock again.
    _ = entries.withLock { entries -> RealtimeDatabase? in
      guard case .provisional(let entry)? = entries[namespace] else { return nil }
      let database = entry.database
      if database == nil { entries[namespace] = nil }
      return database
    }
  }

  /// The names of all namespaces, in ascending order.
  package func namespaces() async throws(RealtimeError) -> [String] {
    do {
      return try await store.databaseNames().filter { $0.hasPrefix(Self.cataloguePrefix) }
        .map { String($0.dropFirst(Self.cataloguePrefix.count)) }
    } catch { throw RealtimeError(storeError: error) }
  }

  /// The rules that describe the policy of a namespace without stored rules.
  package func defaultRules(of namespace: String) -> String {
    policies.current(of: namespace).policy.rules
  }

  /// Finds the namespaces whose stored rules may deny something to users. ``allowsEverything(_:in:)`` needs the
  /// result for namespaces that are not open. Called before the first request. Reads one row of each namespace.
  ///
  /// - Throws: ``RealtimeModel/RealtimeError`` if the store cannot be read, or rules are damaged.
  package func findRestrictedNamespaces() async throws(RealtimeError) {
    guard let rules else { return }
    do {
      let found = try await withThrowingTaskGroup(of: String?.self) { [store] group in
        var found: Set<String> = []
        for (position, namespace) in try await namespaces().enumerated() {
          if position >= Self.maximumConcurrentReads, let name = try await group.next() ?? nil {
            found.insert(name)
          }
          group.addTask {
            let rows = try await store.database(
              named: Self.cataloguePrefix + namespace, history: .activeReadersOnly)
            let cache = RulesCache(rules)
            _ = try await rows.read(at: nil) { view in try cache.rules(in: view) != nil }
            return cache.mayDeny ? namespace : nil
          }
        }
        for try await case let name? in group { found.insert(name) }
        return found
      }
      restrictedNamespaces.withLock { $0 = found }
    } catch { throw RealtimeError(storeError: error) }
  }

  private static let maximumConcurrentReads = 32

  /// Whether the policy of a namespace permits a caller every operation. False for a user if stored rules may deny
  /// something.
  package func allowsEverything(_ caller: Principal, in namespace: String) -> Bool {
    if let database = openDatabase(namespace) { return database.allowsEverything(caller) }
    let caller = caller.acting(in: project(namespace))
    return policies.current(of: namespace).allowsEverything(caller)
      && (caller.role != nil || !restrictedNamespaces.withLock { $0.contains(namespace) })
  }

  /// The project of a namespace.
  package func project(of namespace: String) -> String { project(namespace) }

  /// A new push id. The ids of one process ascend.
  package func nextPushID() -> String {
    let milliseconds = now()
    return pushIDs.withLock { $0.next(at: milliseconds) }
  }

  /// Completes submitted operations, delivers their results, and rejects later ones. onDisconnect writes of
  /// open sessions stay stored, and are performed when the namespace is opened again.
  package func shutdown() async {
    let open = entries.withLock { entries in
      defer { entries = [:] }
      return Array(entries.values)
    }
    for entry in open {
      switch entry {
      case .opening(let opening):
        if case .success(let database) = await opening.value { await database.shutdown() }
      case .open(let database): await database.shutdown()
      case .provisional(let entry): await entry.database?.shutdown()
      }
    }
  }

  private static func isValid(_ namespace: String) -> Bool {
    guard !namespace.isEmpty, namespace.utf8.count <= 200 else { return false }
    return namespace.utf8.allSatisfy { byte in
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "."):
        true
      default: false
      }
    }
  }
}
