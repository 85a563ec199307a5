// The HTTP client: sends HTTP requests with URLSession, which exists on Linux and on Apple's platforms.
//
// Invariant: every request ends exactly once, even if it is cancelled before it starts. A redirect and a
// response larger than `maximumResponseBytes` end the request with an error. Nothing is cached, and no
// cookies are stored.

import Foundation
import Locking

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// The HTTP client of all `Auth` instances of the process.
// SAFETY: the only mutable state is behind the lock of `state`.
final class HTTPClient: NSObject, URLSessionDataDelegate, @unchecked Sendable {
  /// The maximum number of bytes of a response body. Responses of the API have a few kilobytes.
  static let maximumResponseBytes = 8 << 20
  /// The time in seconds without any data after which a request fails.
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
    /// The requests that have not ended, by task identifier.
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
    // The session is created here, because creating a lazy property is not thread-safe.
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
    // Redirects are not followed, because credentials must not be sent to another address. The redirect
    // itself becomes the response.
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
