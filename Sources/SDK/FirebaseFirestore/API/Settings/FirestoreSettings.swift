// The settings of a Firestore instance: its server, its cache and its callback queue.

import FirebaseCore
public import Foundation
import Locking

/// The settings of a ``Firestore`` instance. They cannot change after the first use of the instance.
open class FirestoreSettings: NSObject, NSCopying, @unchecked Sendable {
  // Safe to share: all state is behind one lock.
  static let defaultHost = "firestore.googleapis.com"

  struct Values: Sendable {
    var host = FirestoreSettings.defaultHost
    var isSSLEnabled = true
    var dispatchQueue = DispatchQueue.main
    /// The value of `cacheSettings`. If it is nil, the two older settings below apply.
    var chosenCache: CacheKind?
    var isPersistenceEnabled = true
    var cacheSizeBytes = defaultCacheSize

    /// The cache that the settings choose.
    var cache: CacheKind {
      if let chosenCache { return chosenCache }
      let size = NSNumber(value: cacheSizeBytes)
      if isPersistenceEnabled { return .persistent(PersistentCacheSettings(sizeBytes: size)) }
      return .memory(MemoryCacheSettings(garbageCollectorSettings: MemoryLRUGCSettings(sizeBytes: size)))
    }

    /// The older settings that contradict `cacheSettings`, because the app changed them too.
    var contradictions: [String] {
      guard chosenCache != nil else { return [] }
      return [
        isPersistenceEnabled ? nil : "isPersistenceEnabled",
        cacheSizeBytes == defaultCacheSize ? nil : "cacheSizeBytes",
      ].compactMap { $0 }
    }
  }

  /// The types of cache.
  enum CacheKind: Sendable {
    case persistent(PersistentCacheSettings)
    case memory(MemoryCacheSettings)

    var object: any LocalCacheSettings & NSObjectProtocol {
      switch self {
      case .persistent(let settings): settings
      case .memory(let settings): settings
      }
    }
  }

  private let guarded: Guarded<Values>

  /// The default settings: Google's servers, callbacks on the main queue.
  public override init() { guarded = Guarded(Values()) }

  init(_ values: Values) { guarded = Guarded(values) }

  var values: Values { guarded.withLock { $0 } }

  /// The host name of the server, followed by a colon and the port if that is not the default port. An empty
  /// host stops the program.
  open var host: String {
    get { values.host }
    set {
      if newValue.isEmpty { failInvalidArgument("host setting may not be empty.") }
      guarded.withLock { $0.host = newValue }
    }
  }

  /// Whether the connection uses TLS; true by default.
  open var isSSLEnabled: Bool {
    get { values.isSSLEnabled }
    set { guarded.withLock { $0.isSSLEnabled = newValue } }
  }

  /// The queue on which callbacks are called; by default the main queue.
  open var dispatchQueue: DispatchQueue {
    get { values.dispatchQueue }
    set { guarded.withLock { $0.dispatchQueue = newValue } }
  }

  /// The settings of the local cache; by default ``PersistentCacheSettings``. If the app also changes
  /// ``isPersistenceEnabled`` or ``cacheSizeBytes``, it stops when it sets ``Firestore/settings``.
  open var cacheSettings: any LocalCacheSettings & NSObjectProtocol {
    get { values.cache.object }
    set {
      switch newValue {
      case let settings as PersistentCacheSettings:
        guarded.withLock { $0.chosenCache = .persistent(settings) }
      case let settings as MemoryCacheSettings: guarded.withLock { $0.chosenCache = .memory(settings) }
      default: failInvalidArgument("cacheSettings must be PersistentCacheSettings or MemoryCacheSettings")
      }
    }
  }

  /// Whether the cache is on disk; true by default. Deprecated: use ``cacheSettings``.
  open var isPersistenceEnabled: Bool {
    get { values.isPersistenceEnabled }
    set { guarded.withLock { $0.isPersistenceEnabled = newValue } }
  }

  /// The size in bytes above which the least recently used documents are removed, at least 1 MiB, or
  /// `FirestoreCacheSizeUnlimited`. Deprecated: use ``cacheSettings``.
  open var cacheSizeBytes: Int64 {
    get { values.cacheSizeBytes }
    set {
      let size = checkedCacheSize(newValue)
      guarded.withLock { $0.cacheSizeBytes = size }
    }
  }

  /// A copy that does not change with this object.
  open func copy(with zone: NSZone? = nil) -> Any { FirestoreSettings(values) }

  /// Whether all settings are equal.
  open override func isEqual(_ object: Any?) -> Bool {
    guard let other = (object as? FirestoreSettings)?.values else { return false }
    let own = values
    return own.host == other.host && own.isSSLEnabled == other.isSSLEnabled
      && own.dispatchQueue === other.dispatchQueue && own.cacheSizeBytes == other.cacheSizeBytes
      && own.cache.object.isEqual(other.cache.object)
  }

  /// Hashes the host and whether TLS is used.
  open override var hash: Int {
    var hasher = Hasher()
    let own = values
    hasher.combine(own.host)
    hasher.combine(own.isSSLEnabled)
    return hasher.finalize()
  }
}
