// Sends HTTP requests with URLSession, which both Foundation on Linux and Apple's platforms have.
//
// Invariant: every request ends exactly once, also one that is cancelled before it starts. A response over `maximumResponseBytes` and a redirect end the request with an error; nothing is cached,
// and no cookie is stored.

import Foundation
import Locking

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// The HTTP client of all `Auth` instances of the process.
// SAFETY: the only mutable state is behind the lock of `state`.
final class HTTPClient: NSObject, URLSessionDataDelegate, @unchecked Sendable {
  /// The largest response body. Responses of the API are a few kilobytes.
  static let maximumResponseBytes = 8 << 20
  /// The time without any data after which a request fails, in seconds.
  static let timeout = 60.0

  /// A complete response.
  struct Response: Sendable {
    let status: Int
    let body: Data
  }

  private struct Transfer {
    let continuation: CheckedContinuation<Response, any Error>
    var body = Data()
    var isTooLarge = false
  }

  private struct State {
    /// The requests that have not ended, by the identifiers of their tasks.
    var transfers: [Int: Transfer] = [:]
    /// The requests that were cancelled before they started.
    var cancelled: Set<Int> = []
  }

  static let shared = HTTPClient()

  private let state = Guarded(State())

  private lazy var session: URLSession = {
    let configuration = URLSessionConfiguration.ephemeral
    configuration.timeoutIntervalForRequest = Self.timeout
    configuration.httpCookieStorage = nil
    configuration.urlCache = nil
    return URLSession(configuration: configuration, delegate: self, delegateQueue: nil)
  }()

  private override init() {
    super.init()
    // Created here, because a lazy property is not safe to create on several threads.
    _ = session
  }

  /// Sends a request and collects its response.
  ///
  /// - Throws: the error of URLSession; `URLError.dataLengthExceedsMaximum` for a response that is too large.
  func send(_ request: URLRequest) async throws -> Response {
    let task = session.dataTask(with: request)
    let id = task.taskIdentifier
    defer { state.withLock { _ = $0.cancelled.remove(id) } }
    return try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        let isCancelled = state.withLock { state in
          if state.cancelled.contains(id) { return true }
          state.transfers[id] = Transfer(continuation: continuation)
          return false
        }
        if isCancelled {
          continuation.resume(throwing: URLError(.cancelled))
        } else {
          task.resume()
        }
      }
    } onCancel: {
      let transfer = state.withLock { state in
        state.cancelled.insert(id)
        return state.transfers.removeValue(forKey: id)
      }
      task.cancel()
      transfer?.continuation.resume(throwing: URLError(.cancelled))
    }
  }

  func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
    let isTooLarge = state.withLock { state in
      guard var transfer = state.transfers.removeValue(forKey: dataTask.taskIdentifier) else { return false }
      transfer.isTooLarge =
        transfer.isTooLarge || transfer.body.count + data.count > Self.maximumResponseBytes
      if !transfer.isTooLarge { transfer.body.append(data) }
      state.transfers[dataTask.taskIdentifier] = transfer
      return transfer.isTooLarge
    }
    if isTooLarge { dataTask.cancel() }
  }

  func urlSession(
    _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
    newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
  ) {
    // Credentials are not sent to another address; the redirect itself becomes the response.
    completionHandler(nil)
  }

  func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
    guard let transfer = state.withLock({ $0.transfers.removeValue(forKey: task.taskIdentifier) }) else {
      return
    }
    if transfer.isTooLarge {
      transfer.continuation.resume(throwing: URLError(.dataLengthExceedsMaximum))
    } else if let error {
      transfer.continuation.resume(throwing: error)
    } else if let response = task.response as? HTTPURLResponse {
      transfer.continuation.resume(returning: Response(status: response.statusCode, body: transfer.body))
    } else {
      transfer.continuation.resume(throwing: URLError(.badServerResponse))
    }
  }
}
