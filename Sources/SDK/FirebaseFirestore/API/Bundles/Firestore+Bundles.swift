// Loads bundles, and finds their named queries.

import FirestoreModel
public import Foundation

extension Firestore {
  /// Loads a bundle into the cache. A bundle contains documents and query results that a server prepared in
  /// advance.
  ///
  /// A bundle is used only if all of it can be read. If the same or a newer version of the bundle was loaded
  /// before, the task succeeds immediately.
  ///
  /// Errors: `dataLoss` for a damaged bundle or a bundle of another database; `invalidArgument` if its
  /// elements contradict each other.
  @discardableResult
  public func loadBundle(_ bundleData: Data) -> LoadBundleTask { loadBundle(bundleData, completion: nil) }

  /// Loads a bundle into the cache. The completion is called at the end, on the settings' queue. If loading
  /// fails, it receives the error and the last progress.
  @discardableResult
  public func loadBundle(
    _ bundleData: Data, completion: ((LoadBundleTaskProgress?, (any Error)?) -> Void)? = nil
  ) -> LoadBundleTask {
    loadBundle(InputStream(data: bundleData), completion: completion)
  }

  /// Loads a bundle from a stream. The app must not use the stream afterwards.
  @discardableResult
  public func loadBundle(_ bundleStream: InputStream) -> LoadBundleTask {
    loadBundle(bundleStream, completion: nil)
  }

  /// Loads a bundle from a stream. The app must not use the stream afterwards.
  @discardableResult
  public func loadBundle(
    _ bundleStream: InputStream, completion: ((LoadBundleTaskProgress?, (any Error)?) -> Void)? = nil
  ) -> LoadBundleTask {
    let client = client
    var sendableCompletion: LoadBundleTask.Completion?
    if let completion {
      let app = AppClosure(call: completion)
      sendableCompletion = { progress, error in app.call(progress, error?.object) }
    }
    let task = LoadBundleTask(queue: client.callbackQueue, completion: sendableCompletion)
    client.loadBundle(BundleSource(stream: bundleStream), task: task)
    return task
  }

  /// Loads a bundle into the cache; returns the last progress.
  public func loadBundle(_ bundleData: Data) async throws -> LoadBundleTaskProgress {
    try await loadBundle(InputStream(data: bundleData))
  }

  /// Loads a bundle from a stream and returns the last progress. The app must not use the stream afterwards.
  public func loadBundle(_ bundleStream: InputStream) async throws -> LoadBundleTaskProgress {
    let client = client
    let source = BundleSource(stream: bundleStream)
    return try await withCheckedThrowingContinuation { continuation in
      let task = LoadBundleTask(queue: client.callbackQueue) { progress, error in
        if let error {
          continuation.resume(throwing: error.object)
        } else {
          continuation.resume(returning: progress)
        }
      }
      client.loadBundle(source, task: task)
    }
  }

  /// Finds a named query of a loaded bundle; nil if there is none. A listener to the query resumes at the
  /// version at which the bundle's server read the results.
  @preconcurrency
  public func getQuery(named name: String, completion: @escaping @Sendable (Query?) -> Void) {
    client.namedQuery(name) { found in
      completion(found.map { Query($0.query, isLimitToLast: $0.isLimitToLast, firestore: self) })
    }
  }

  /// Finds a named query of a loaded bundle; nil if there is none.
  public func getQuery(named name: String) async -> Query? {
    await withCheckedContinuation { continuation in
      getQuery(named: name) { continuation.resume(returning: $0) }
    }
  }
}
