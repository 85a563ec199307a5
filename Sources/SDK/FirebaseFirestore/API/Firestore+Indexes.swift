// The indexes of the cache. They make queries on the cache faster, and never change their results.

import FirestoreModel
public import Foundation

extension Firestore {
  /// Replaces the configured indexes of the cache by those of a configuration in JSON. Firebase's
  /// command-line tools export it as `firestore.indexes.json`. The automatic indexes stay. Google's SDK has
  /// deprecated this method.
  ///
  /// The cache's documents are indexed before the completion is called. If the JSON is invalid, it fails with
  /// `invalidArgument` and changes nothing. The message names the invalid part.
  @preconcurrency
  public func setIndexConfiguration(_ json: String, completion: (@Sendable ((any Error)?) -> Void)? = nil) {
    configureIndexes(Data(json.utf8), completion)
  }

  /// Replaces the configured indexes of the cache. Throws `invalidArgument` if the configuration is not
  /// valid.
  public func setIndexConfiguration(_ json: String) async throws {
    try await Continuations.waitForCompletion { setIndexConfiguration(json, completion: $0) }
  }

  /// Replaces the configured indexes of the cache by those of a configuration. The method reads the stream
  /// before it returns. It fails with `dataLoss` if the stream cannot be read.
  @preconcurrency
  public func setIndexConfiguration(
    _ stream: InputStream, completion: (@Sendable ((any Error)?) -> Void)? = nil
  ) {
    let source = BundleSource(stream: stream)
    var data = Data()
    source.open()
    defer { source.close() }
    do throws(FirestoreError) {
      while let bytes = try source.read() { data.append(contentsOf: bytes) }
      configureIndexes(data, completion)
    } catch {
      if let completion { client.callbackQueue.async { completion(error.object) } }
    }
  }

  /// Replaces the configured indexes of the cache. Throws `invalidArgument` if the configuration is not
  /// valid.
  public func setIndexConfiguration(_ stream: InputStream) async throws {
    try await Continuations.waitForCompletion { setIndexConfiguration(stream, completion: $0) }
  }

  private func configureIndexes(_ data: Data, _ completion: (@Sendable ((any Error)?) -> Void)?) {
    let client = client
    do throws(FirestoreError) {
      client.configure(try IndexConfiguration.parse(data), completion: withTypedErrors(completion))
    } catch {
      FirestoreLog.warning("I-FST000004", error.message)
      if let completion { client.callbackQueue.async { completion(error.object) } }
    }
  }

  /// The automatic indexes of the cache; nil if the settings choose a cache in memory.
  public var persistentCacheIndexManager: PersistentCacheIndexManager? {
    let client = client
    guard settings.isPersistenceEnabled else { return nil }
    return PersistentCacheIndexManager(client)
  }
}

/// The manager of the cache's automatic indexes. The SDK creates one when a query reads many documents to
/// find few.
///
/// Unlike in Google's SDK, automatic indexes are on by default. The SDK creates at most 32 of them, each for
/// collections of at least 100 documents. They exist as long as the cache.
open class PersistentCacheIndexManager: NSObject, @unchecked Sendable {
  // SAFETY: constants of Sendable types only.
  private let client: FirestoreClient

  init(_ client: FirestoreClient) { self.client = client }

  /// Lets the SDK create indexes for queries that are slow on the cache. This is the default.
  open func enableIndexAutoCreation() { client.setIndexCreation(enabled: true) }

  /// Stops the creation of indexes. Existing indexes stay in use.
  open func disableIndexAutoCreation() { client.setIndexCreation(enabled: false) }

  /// Removes all indexes, including configured ones. The SDK may create automatic ones again.
  open func deleteAllIndexes() { client.deleteAllIndexes() }

  /// Whether both manage the indexes of the same instance.
  open override func isEqual(_ object: Any?) -> Bool {
    (object as? PersistentCacheIndexManager)?.client === client
  }

  /// Hashes the instance.
  open override var hash: Int { ObjectIdentifier(client).hashValue }
}
