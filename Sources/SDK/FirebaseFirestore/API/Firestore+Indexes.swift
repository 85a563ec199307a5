// The indexes of the cache. They change the time of a query on the cache, never its results.

import FirestoreModel
public import Foundation

extension Firestore {
  /// Keeps exactly the indexes that a configuration names, as the command-line tools export it
  /// (`firestore.indexes.json`), in addition to the automatic ones. Deprecated in the product.
  ///
  /// The cache's documents are indexed before the completion is called. Fails with `invalidArgument`, and changes
  /// nothing, if the JSON is invalid; the message names the invalid part.
  @preconcurrency
  public func setIndexConfiguration(_ json: String, completion: (@Sendable ((any Error)?) -> Void)? = nil) {
    configureIndexes(Data(json.utf8), completion)
  }

  /// Keeps exactly the indexes that a configuration names. Throws `invalidArgument` where it is not valid.
  public func setIndexConfiguration(_ json: String) async throws {
    try await Continuations.done { setIndexConfiguration(json, completion: $0) }
  }

  /// Keeps exactly the indexes that a configuration names, which is read from a stream before this
  /// returns. Fails with `dataLoss` where the stream cannot be read.
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

  /// Keeps exactly the indexes that a configuration names. Throws `invalidArgument` where it is not valid.
  public func setIndexConfiguration(_ stream: InputStream) async throws {
    try await Continuations.done { setIndexConfiguration(stream, completion: $0) }
  }

  private func configureIndexes(_ data: Data, _ completion: (@Sendable ((any Error)?) -> Void)?) {
    let client = client
    do throws(FirestoreError) {
      client.configure(try IndexConfiguration.parse(data), completion: reporting(completion))
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

/// The automatic indexes of the cache. The SDK makes one when a query reads many documents to find a few.
///
/// Unlike in Google's SDK, they are on by default. At most 32 are made, each for collections of 100 documents and
/// more. They exist as long as the cache.
open class PersistentCacheIndexManager: NSObject, @unchecked Sendable {
  // SAFETY: constants of Sendable types only.
  private let client: FirestoreClient

  init(_ client: FirestoreClient) { self.client = client }

  /// Lets the SDK make indexes for queries that are slow on the cache. This is the default.
  open func enableIndexAutoCreation() { client.setIndexCreation(enabled: true) }

  /// Makes no further indexes; existing ones stay in use.
  open func disableIndexAutoCreation() { client.setIndexCreation(enabled: false) }

  /// Removes all indexes, configured ones included. Automatic ones may be made again.
  open func deleteAllIndexes() { client.deleteAllIndexes() }

  /// Whether both manage the same instance's indexes.
  open override func isEqual(_ object: Any?) -> Bool {
    (object as? PersistentCacheIndexManager)?.client === client
  }

  /// Hashes the instance.
  open override var hash: Int { ObjectIdentifier(client).hashValue }
}
