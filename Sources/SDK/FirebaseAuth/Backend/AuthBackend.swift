// The auth backend: calls the operations of the authentication services.
//
// Invariant: every thrown error is an NSError in the domain `AuthErrorDomain`.

import FirebaseCore
import Foundation

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// An operation of the authentication services, with the members of its JSON body.
protocol AuthRequest: Encodable, Sendable {
  associatedtype Response: Decodable & Sendable
  /// The service of the operation.
  static var service: AuthServer.Service { get }
  /// The path of the operation, such as `accounts:signUp`.
  static var operation: String { get }
  /// Whether the body contains the tenant ID of `Auth`.
  static var hasTenant: Bool { get }
}

extension AuthRequest {
  static var service: AuthServer.Service { .identity }
  static var hasTenant: Bool { true }
}

/// A response whose members are not used.
struct EmptyResponse: Decodable, Sendable {}

/// The settings with which one `Auth` calls the services.
struct AuthBackend: Sendable {
  var server = AuthServer.google
  let apiKey: String
  let appID: String
  let bundleID: String
  var languageCode: String?
  var tenantID: String?
  let appCheckTokens: TokenSource

  /// Calls an operation.
  ///
  /// - Throws: `networkError` if no complete response arrives; the code of the server's error; or
  ///   `internalError` for a response that cannot be parsed.
  func call<Request: AuthRequest>(_ request: Request) async throws -> Request.Response {
    let body: Data
    do {
      body = try JSONEncoder().encode(Body(request: request, tenantID: Request.hasTenant ? tenantID : nil))
    } catch {
      throw AuthInternalError.requestEncoding.error(cause: error)
    }
    guard let url = server.url(Request.service, Request.operation, apiKey: apiKey) else {
      throw AuthInternalError.requestEncoding.error(cause: URLError(.badURL))
    }
    let response = try await send(body, to: url)
    guard (200..<300).contains(response.status) else { throw Self.error(of: response) }
    do {
      return try JSONDecoder().decode(Request.Response.self, from: response.body)
    } catch {
      throw AuthInternalError.responseDecoding.error(
        response: String(decoding: response.body, as: UTF8.self), cause: error)
    }
  }

  private func send(_ body: Data, to url: URL) async throws -> HTTPClient.Response {
    var request = URLRequest(url: url)
    request.httpMethod = "POST"
    request.httpBody = body
    request.setValue("application/json", forHTTPHeaderField: "Content-Type")
    request.setValue(
      "Swift/FirebaseSDK/\(FirebaseVersion())/FirebaseCore-Swift", forHTTPHeaderField: "X-Client-Version")
    request.setValue(appID, forHTTPHeaderField: "X-Firebase-GMPID")
    if !bundleID.isEmpty { request.setValue(bundleID, forHTTPHeaderField: "X-Ios-Bundle-Identifier") }
    if let languageCode, !languageCode.isEmpty {
      request.setValue(languageCode, forHTTPHeaderField: "X-Firebase-Locale")
    }
    if let token = try? await appCheckTokens.token(forcingRefresh: false) {
      request.setValue(token, forHTTPHeaderField: "X-Firebase-AppCheck")
    }
    do {
      return try await HTTPClient.shared.send(request)
    } catch {
      throw AuthErrorCode.networkError.error(underlying: error)
    }
  }

  /// The error in a response whose status is a failure.
  private static func error(of response: HTTPClient.Response) -> NSError {
    let text = String(decoding: response.body, as: UTF8.self)
    guard let envelope = try? JSONDecoder().decode(ErrorEnvelope.self, from: response.body) else {
      return AuthInternalError.unexpectedErrorResponse.error(
        response: text,
        cause: NSError(domain: "com.google.HTTPStatus", code: response.status))
    }
    let reasons = envelope.error.errors?.compactMap(\.reason) ?? []
    return ServerErrorNames.error(for: envelope.error.message, reasons: reasons)
      ?? AuthInternalError.unexpectedErrorResponse.error(response: text)
  }

  /// The body of a request: the members of the operation, and the tenant ID.
  private struct Body<Request: AuthRequest>: Encodable {
    let request: Request
    let tenantID: String?

    enum CodingKeys: String, CodingKey {
      case tenantID = "tenantId"
    }

    func encode(to encoder: any Encoder) throws {
      try request.encode(to: encoder)
      guard let tenantID else { return }
      var container = encoder.container(keyedBy: CodingKeys.self)
      try container.encode(tenantID, forKey: .tenantID)
    }
  }

  private struct ErrorEnvelope: Decodable {
    struct Failure: Decodable {
      let message: String
      let errors: [Item]?
    }

    struct Item: Decodable {
      let reason: String?
    }

    let error: Failure
  }
}
