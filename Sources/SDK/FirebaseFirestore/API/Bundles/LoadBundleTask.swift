// The task of loading a bundle, which reports progress to the app.
//
// Invariant: observers receive every progress in order, on the settings' queue. They receive nothing after
// the last progress.

import FirebaseCore
import FirestoreModel
public import Foundation
import Locking

/// The state of loading a bundle.
public enum LoadBundleTaskState: Int, Sendable {
  /// Loading failed.
  case error = 0
  /// The bundle is being loaded.
  case inProgress = 1
  /// The bundle was loaded.
  case success = 2
}

/// The progress of loading a bundle.
open class LoadBundleTaskProgress: NSObject, @unchecked Sendable {
  // SAFETY: constants of Sendable types only.
  /// The number of documents that were loaded.
  public let documentsLoaded: Int
  /// The number of documents in the bundle.
  public let totalDocuments: Int
  /// The number of bytes that were loaded, without the bundle's metadata.
  public let bytesLoaded: Int
  /// The number of bytes of the bundle, without its metadata.
  public let totalBytes: Int
  /// The state of loading.
  public let state: LoadBundleTaskState

  init(
    _ state: LoadBundleTaskState, documents: Int = 0, of totalDocuments: Int = 0, bytes: Int = 0,
    of totalBytes: Int = 0
  ) {
    documentsLoaded = documents
    self.totalDocuments = totalDocuments
    bytesLoaded = bytes
    self.totalBytes = totalBytes
    self.state = state
  }

  private var numbers: [Int] { [documentsLoaded, totalDocuments, bytesLoaded, totalBytes, state.rawValue] }

  /// Whether all numbers and the state are equal.
  open override func isEqual(_ object: Any?) -> Bool {
    (object as? LoadBundleTaskProgress)?.numbers == numbers
  }

  /// Hashes the numbers.
  open override var hash: Int { numbers.hashValue }
}

/// Identifies an observer of a ``LoadBundleTask``.
public typealias LoadBundleObserverHandle = Int

/// A task that loads a bundle.
///
/// ```swift
/// let task = db.loadBundle(data)
/// task.addObserver { print($0.documentsLoaded, "of", $0.totalDocuments) }
/// ```
open class LoadBundleTask: NSObject, @unchecked Sendable {
  // SAFETY: constants of Sendable types only.
  typealias Completion = @Sendable (LoadBundleTaskProgress, FirestoreError?) -> Void

  private struct State {
    var observers: [(handle: Int, app: AppClosure<(LoadBundleTaskProgress) -> Void>)] = []
    var completion: Completion?
    var nextHandle = 1
    var progress = LoadBundleTaskProgress(.inProgress)
  }

  private let queue: DispatchQueue
  private let state = Guarded(State())

  init(queue: DispatchQueue, completion: Completion?) {
    self.queue = queue
    state.withLock { $0.completion = completion }
  }

  /// Adds an observer, which receives every later progress on the settings' queue. The last one has the state
  /// `success` or `error`.
  @discardableResult
  open func addObserver(
    _ observer: @escaping (LoadBundleTaskProgress) -> Void
  ) -> LoadBundleObserverHandle {
    let app = AppClosure(call: observer)
    return state.withLock { state in
      let handle = state.nextHandle
      state.nextHandle += 1
      state.observers.append((handle, app))
      return handle
    }
  }

  /// Removes an observer.
  open func removeObserverWith(handle: LoadBundleObserverHandle) {
    state.withLock { $0.observers.removeAll { $0.handle == handle } }
  }

  /// Removes all observers, including the completion that was passed to `loadBundle`.
  open func removeAllObservers() {
    state.withLock {
      $0.observers = []
      $0.completion = nil
    }
  }

  // MARK: Steps

  func reportProgress(_ metadata: BundleMetadata, documents: Int, bytes: Int) {
    notify(
      LoadBundleTaskProgress(
        .inProgress, documents: documents, of: metadata.totalDocuments, bytes: bytes, of: metadata.totalBytes)
    )
  }

  func succeed(_ metadata: BundleMetadata) {
    notify(
      LoadBundleTaskProgress(
        .success, documents: metadata.totalDocuments, of: metadata.totalDocuments, bytes: metadata.totalBytes,
        of: metadata.totalBytes))
  }

  func fail(_ error: FirestoreError) {
    let last = state.withLock { $0.progress }
    notify(
      LoadBundleTaskProgress(
        .error, documents: last.documentsLoaded, of: last.totalDocuments, bytes: last.bytesLoaded,
        of: last.totalBytes), error)
  }

  private func notify(_ progress: LoadBundleTaskProgress, _ error: FirestoreError? = nil) {
    state.withLock { $0.progress = progress }
    queue.async { [self] in
      // Reads the observers at this time, because an app adds observers after the loading has started.
      let (observers, completion) = state.withLock { state in
        (state.observers, progress.state == .inProgress ? nil : state.completion)
      }
      for observer in observers { observer.app.call(progress) }
      completion?(progress, error)
    }
  }
}
