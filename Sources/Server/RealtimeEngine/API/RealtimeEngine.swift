// The Realtime Database engine: the namespaces of one store. Knows no wire format and no network.

public import OrderedStore
public import RealtimeModel

/// All Realtime Databases of a store.
public final class RealtimeEngine: Sendable {
  private typealias Opening = Task<Result<RealtimeDatabase, RealtimeError>, Never>

  private let store: any OrderedStore
  private let policy: any AccessPolicy
  private let limits: RealtimeLimits
  private let cacheBytes: Int
  private let now: @Sendable () -> Int64
  private let entries = Guarded<[String: Opening]>([:])
  private let pushIDs = Guarded(PushIDGenerator())

  private static let prefix = "realtime/"

  /// Makes the engine; nothing is opened yet.
  ///
  /// - Parameters:
  ///   - policy: decides who may do what.
  ///   - limits: the limits of the data model.
  ///   - cacheBytes: about how much memory hot subtrees of one namespace may take.
  ///   - now: the clock that push ids take their time from, in milliseconds since the Unix epoch.
  public init(
    store: any OrderedStore, policy: any AccessPolicy, limits: RealtimeLimits = .standard,
    cacheBytes: Int = 256 << 20, now: @escaping @Sendable () -> Int64 = SystemTime.milliseconds
  ) {
    self.store = store
    self.policy = policy
    self.limits = limits
    self.cacheBytes = cacheBytes
    self.now = now
  }

  /// Opens a namespace, creating it if it is new. What sessions of a server that was killed had registered for their
  /// end is written before this returns.
  ///
  /// - Throws: ``RealtimeModel/RealtimeError`` for a bad name or when the store cannot open it.
  public func database(_ namespace: String) async throws(RealtimeError) -> RealtimeDatabase {
    guard RealtimeEngine.isValid(namespace) else {
      throw RealtimeError(.failure, "Invalid namespace: \"\(namespace)\"")
    }
    let opening = entries.withLock { entries -> Opening in
      if let entry = entries[namespace] { return entry }
      let (store, policy, limits, cacheBytes) = (store, policy, limits, cacheBytes)
      let entry = Opening {
        do {
          let database = try await store.database(named: Self.prefix + namespace, history: .openReads)
          return .success(
            try await RealtimeDatabase(
              namespace: namespace, store: database, policy: policy, limits: limits, cacheBytes: cacheBytes))
        } catch { return .failure(RealtimeError(storeError: error)) }
      }
      entries[namespace] = entry
      return entry
    }
    let result = await opening.value
    if case .failure = result { entries.withLock { $0[namespace] = nil } }
    return try result.get()
  }

  /// The names of all namespaces, in ascending order.
  public func namespaces() async throws(RealtimeError) -> [String] {
    do {
      return try await store.databaseNames().filter { $0.hasPrefix(Self.prefix) }
        .map { String($0.dropFirst(Self.prefix.count)) }
    } catch { throw RealtimeError(storeError: error) }
  }

  /// A new push id. Ids of one process ascend.
  public func nextPushID() -> String {
    let milliseconds = now()
    return pushIDs.withLock { $0.next(at: milliseconds) }
  }

  /// Finishes what was submitted, makes it durable and delivers what follows; what comes later is refused. What live
  /// sessions registered for their end stays, and happens when the namespace is opened again.
  public func shutdown() async {
    let open = entries.withLock { entries in
      defer { entries = [:] }
      return Array(entries.values)
    }
    for opening in open {
      if case .success(let database) = await opening.value { await database.shutdown() }
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
