// Bundles of documents and named queries. This version cannot read them and says so: every call
// ends with `unimplemented`, and no named query is ever found.

import FirebaseCore
import FirestoreModel
public import Foundation

/// How far loading a bundle has come.
public enum LoadBundleTaskState: Int, Sendable {
  /// It failed.
  case error = 0
  /// It is under way.
  case inProgress = 1
  /// It is done.
  case success = 2
}

/// How much of a bundle has been loaded.
public final class LoadBundleTaskProgress: NSObject, Sendable {
  /// Documents loaded.
  public let documentsLoaded: Int
  /// Documents in the bundle.
  public let totalDocuments: Int
  /// Bytes read.
  public let bytesLoaded: Int
  /// Bytes in the bundle.
  public let totalBytes: Int
  /// How far loading has come.
  public let state: LoadBundleTaskState

  init(state: LoadBundleTaskState) {
    documentsLoaded = 0
    totalDocuments = 0
    bytesLoaded = 0
    totalBytes = 0
    self.state = state
  }
}

/// Names an observer of a ``LoadBundleTask``.
public typealias LoadBundleObserverHandle = Int

/// The loading of a bundle. In this version it has always failed already.
public final class LoadBundleTask: NSObject, Sendable {
  static let error = FirestoreError.unimplemented("This version of the SDK cannot load bundles.")

  private let queue: DispatchQueue

  init(queue: DispatchQueue) { self.queue = queue }

  /// Adds an observer; it is told at once that loading failed.
  @discardableResult
  public func addObserver(
    _ observer: @escaping (LoadBundleTaskProgress) -> Void
  ) -> LoadBundleObserverHandle {
    let app = AppClosure(call: observer)
    queue.async { app.call(LoadBundleTaskProgress(state: .error)) }
    return 0
  }

  /// Removes an observer.
  public func removeObserverWith(handle: LoadBundleObserverHandle) {}

  /// Removes all observers.
  public func removeAllObservers() {}
}

extension Firestore {
  /// Fails with `unimplemented`: bundles cannot be loaded yet.
  @discardableResult
  public func loadBundle(_ bundleData: Data) -> LoadBundleTask { loadBundle(bundleData, completion: nil) }

  /// Fails with `unimplemented`: bundles cannot be loaded yet.
  @discardableResult
  public func loadBundle(
    _ bundleData: Data, completion: ((LoadBundleTaskProgress?, (any Error)?) -> Void)? = nil
  ) -> LoadBundleTask {
    refuseBundle(completion)
  }

  /// Fails with `unimplemented`: bundles cannot be loaded yet.
  @discardableResult
  public func loadBundle(_ bundleStream: InputStream) -> LoadBundleTask {
    loadBundle(bundleStream, completion: nil)
  }

  /// Fails with `unimplemented`: bundles cannot be loaded yet.
  @discardableResult
  public func loadBundle(
    _ bundleStream: InputStream, completion: ((LoadBundleTaskProgress?, (any Error)?) -> Void)? = nil
  ) -> LoadBundleTask {
    refuseBundle(completion)
  }

  /// Throws `unimplemented`: bundles cannot be loaded yet.
  public func loadBundle(_ bundleData: Data) async throws -> LoadBundleTaskProgress {
    throw LoadBundleTask.error.object
  }

  /// Throws `unimplemented`: bundles cannot be loaded yet.
  public func loadBundle(_ bundleStream: InputStream) async throws -> LoadBundleTaskProgress {
    throw LoadBundleTask.error.object
  }

  private func refuseBundle(
    _ completion: ((LoadBundleTaskProgress?, (any Error)?) -> Void)?
  ) -> LoadBundleTask {
    let queue = client.callbackQueue
    if let completion {
      let app = AppClosure(call: completion)
      queue.async { app.call(nil, LoadBundleTask.error.object) }
    }
    return LoadBundleTask(queue: queue)
  }

  /// Finds no query: named queries come with bundles, which cannot be loaded yet.
  @preconcurrency
  public func getQuery(named name: String, completion: @escaping @Sendable (Query?) -> Void) {
    client.callbackQueue.async { completion(nil) }
  }

  /// Finds no query: named queries come with bundles, which cannot be loaded yet.
  public func getQuery(named name: String) async -> Query? { nil }

  /// Does nothing: the cache in memory keeps no indexes. Deprecated in the product.
  @preconcurrency
  public func setIndexConfiguration(_ json: String, completion: (@Sendable ((any Error)?) -> Void)? = nil) {
    if let completion { client.callbackQueue.async { completion(nil) } }
  }

  /// Does nothing: the cache in memory keeps no indexes. Deprecated in the product.
  public func setIndexConfiguration(_ json: String) async throws {}

  /// Does nothing: the cache in memory keeps no indexes. Deprecated in the product.
  @preconcurrency
  public func setIndexConfiguration(
    _ stream: InputStream, completion: (@Sendable ((any Error)?) -> Void)? = nil
  ) {
    if let completion { client.callbackQueue.async { completion(nil) } }
  }

  /// Does nothing: the cache in memory keeps no indexes. Deprecated in the product.
  public func setIndexConfiguration(_ stream: InputStream) async throws {}
}
