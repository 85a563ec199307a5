// Tests the responses of the Firestore port to plain HTTP/1.1.

import Foundation
import JSON
import RealtimeModel
import Testing

@testable import EndpointFixture
@testable import Ports

@Suite("Plain HTTP on the Firestore port", .timeLimit(.minutes(10)))
struct PlainHTTPTests {
  private func response(to request: String) async throws -> String {
    let echo = try await EchoPort.start()
    let connection = try await RawConnection.connect(port: echo.port.port)
    try await connection.send(request)
    let response = try await connection.textUntilClose()
    await echo.stop()
    return response
  }

  @Test("GET / returns Ok, as tools that wait for an emulator expect")
  func health() async throws {
    let text = try await response(to: "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    #expect(text.hasPrefix("HTTP/1.1 200 OK"))
    #expect(text.hasSuffix("\r\n\r\nOk\n"))
  }

  @Test("HEAD / has no body")
  func head() async throws {
    let text = try await response(to: "HEAD / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    #expect(text.hasPrefix("HTTP/1.1 200 OK"))
    #expect(text.hasSuffix("\r\n\r\n"))
  }

  @Test("Over HTTP/1.0 the connection closes after the response, also with keep-alive")
  func oldVersion() async throws {
    let text = try await response(to: "GET / HTTP/1.0\r\nHost: x\r\nConnection: keep-alive\r\n\r\n")
    #expect(text.hasPrefix("HTTP/1.0 200 OK") && text.contains("\r\nconnection: close\r\n"))
    #expect(text.hasSuffix("\r\n\r\nOk\n"))
  }

  @Test("Other paths return 404")
  func unknownPath() async throws {
    let text = try await response(to: "GET /nothing HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    #expect(text.hasPrefix("HTTP/1.1 404 Not Found"))
    #expect(text.hasSuffix("Not Found\n"))
  }

  @Test("A preflight request returns 200 for its origin, with the headers that it requests")
  func preflight() async throws {
    let text = try await response(
      to: """
        OPTIONS /anything HTTP/1.1\r
        Host: x\r
        Origin: https://app.example\r
        Access-Control-Request-Headers: x-goog-api-client\r
        Connection: close\r
        \r\n
        """)
    #expect(text.hasPrefix("HTTP/1.1 200 OK"))
    #expect(text.contains("access-control-allow-origin: https://app.example\r\n"))
    #expect(text.contains("access-control-allow-credentials: true\r\n"))
    #expect(text.contains("access-control-allow-headers: x-goog-api-client\r\n"))
  }

  @Test("HTTP/1.1 without a Host header, or with two, gets 400", arguments: ["", "Host: a\r\nHost: b\r\n"])
  func hostHeaders(headers: String) async throws {
    let text = try await response(to: "GET / HTTP/1.1\r\n\(headers)Connection: close\r\n\r\n")
    #expect(text.hasPrefix("HTTP/1.1 400 Bad Request") && text.contains("exactly one Host header"), "\(text)")
  }

  @Test(
    "Invalid HTTP/1.1 gets the official error with the reason, and the connection closes",
    arguments: [
      ("\u{1}\u{2}nonsense\r\n\r\n", "method"), ("NONSENSE / HTTP/1.1\r\n\r\n", "method"),
      ("GET /\u{1} HTTP/1.1\r\n\r\n", "target"), ("GET / HTTP/3.1\r\n\r\n", "version"),
      ("GET / HTTP/1.1\r\na b: c\r\n\r\n", "header"),
      ("GET / HTTP/1.1\r\na: \(String(repeating: "x", count: 90_000))\r\n\r\n", "80 KiB"),
      ("GET / HTTP/1.1\r\n\(String(repeating: "a: b\r\n", count: 300))\r\n", "256 headers"),
      ("POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n", "Content-Length"),
      (
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "Transfer-Encoding"
      ),
      // The error is within a body, or after a request that is answered first.
      ("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\nzz\r\n", "chunk"),
      ("GET / HTTP/1.1\r\nHost: x\r\n\r\nGET\u{1}\r\n\r\n", "method"),
    ])
  func invalidBytes(request: String, reason: String) async throws {
    let text = try await response(to: request)
    let body = try #require(text.components(separatedBy: "HTTP/1.1 400 Bad Request\r\n").last, "\(text)")
    let json = try #require(body.components(separatedBy: "\r\n\r\n").last)
    let error = try JSONValue(json: Array(json.utf8)).object?["error"]?.object
    #expect(error?["status"] == .string("INVALID_ARGUMENT") && error?["code"] == .int(400), "\(text)")
    let message = try #require(error?["message"]?.string)
    #expect(
      message.hasPrefix("The request is not valid HTTP/1.1: ") && message.contains(reason), "\(message)")
    #expect(body.lowercased().contains("connection: close\r\n"))
    #expect(text.hasPrefix("HTTP/1.1 200 OK") == request.hasPrefix("GET / HTTP/1.1\r\nHost: x"))
  }

  @Test("A body above the limit of request bodies gets 400")
  func largeBody() async throws {
    var limits = PortLimits()
    limits.maximumRequestBody = 1000
    let echo = try await EchoPort.start(limits: limits)
    let connection = try await RawConnection.connect(port: echo.port.port)
    let body = String(repeating: "x", count: 2000)
    try await connection.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2000\r\n\r\n\(body)")
    #expect(try await connection.textUntilClose().hasPrefix("HTTP/1.1 400"))
    await echo.stop()
  }
}
