// Tests how a connection's first bytes select its protocol, independent of how the bytes are divided.

import NIOCore
import Testing

@testable import EndpointFixture
@testable import Ports

@Suite("Protocol sniffing", .timeLimit(.minutes(10)))
struct SnifferTests {
  private static let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)

  @Test("A proper prefix of the HTTP/2 preface is undecided; the complete preface is HTTP/2")
  func preface() {
    for length in 0..<Self.preface.count {
      #expect(SniffedProtocol(firstBytes: Self.preface.prefix(length)) == nil)
    }
    #expect(SniffedProtocol(firstBytes: Self.preface) == .http2)
    #expect(SniffedProtocol(firstBytes: Self.preface + [0, 0, 0]) == .http2)
  }

  @Test("A byte that differs from the preface selects HTTP/1.1")
  func otherBytes() {
    for index in Self.preface.indices {
      var bytes = Array(Self.preface.prefix(index + 1))
      bytes[index] ^= 0x20
      #expect(SniffedProtocol(firstBytes: bytes) == .http1)
    }
    #expect(SniffedProtocol(firstBytes: Array("PUT / HTTP/1.1".utf8)) == .http1)
  }

  @Test("A request that arrives byte by byte is answered")
  func byteByByte() async throws {
    let echo = try await EchoPort.start()
    let connection = try await RawConnection.connect(port: echo.port.port)
    for byte in "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".utf8 {
      try await connection.send([byte])
    }
    let response = try await connection.textUntilClose()
    #expect(response.hasPrefix("HTTP/1.1 200 OK\r\n"))
    #expect(response.hasSuffix("\r\n\r\nOk\n"))
    await echo.stop()
  }

  @Test(
    "A connection that sends nothing, or only a part of the preface, is closed after the handshake timeout")
  func handshakeTimeout() async throws {
    var limits = PortLimits()
    limits.handshakeTimeout = .seconds(1)
    let echo = try await EchoPort.start(limits: limits)
    let silent = try await RawConnection.connect(port: echo.port.port)
    let stuck = try await RawConnection.connect(port: echo.port.port)
    try await stuck.send("PRI * HT")
    #expect(try await silent.textUntilClose().isEmpty)
    #expect(try await stuck.textUntilClose().isEmpty)
    await echo.stop()
  }

  @Test(
    "An incomplete request head gets 408 at its deadline; an idle connection is closed without a response"
  )
  func slowHead() async throws {
    var limits = PortLimits()
    limits.requestHeadTimeout = .seconds(1)
    let echo = try await EchoPort.start(limits: limits)
    let complete = "GET / HTTP/1.1\r\nHost: x\r\n\r\n"
    let slow = try await RawConnection.connect(port: echo.port.port)
    try await slow.send("GET / HTTP/1.1\r\nX-A: ")
    let second = try await RawConnection.connect(port: echo.port.port)
    try await second.send(complete)
    #expect(try await second.text(until: "Ok\n").hasPrefix("HTTP/1.1 200 "))
    try await second.send("GET / HTTP/1.1\r\nX-A: ")
    for late in [slow, second] {
      let response = try await late.textUntilClose()
      #expect(response.hasPrefix("HTTP/1.1 408 Request Timeout\r\n"))
      #expect(response.contains("\r\nconnection: close\r\n"))
      #expect(response.hasSuffix("\r\n\r\nThe request's head did not arrive completely in time.\n"))
    }
    let idle = try await RawConnection.connect(port: echo.port.port)
    try await idle.send(complete)
    #expect(try await idle.text(until: "Ok\n").hasPrefix("HTTP/1.1 200 "))
    #expect(try await idle.textUntilClose().isEmpty)
    await echo.stop()
  }

  @Test("Connections above the limit are closed immediately; a closed connection makes room for another")
  func connectionLimit() async throws {
    var limits = PortLimits()
    limits.maximumConnections = 2
    let echo = try await EchoPort.start(limits: limits)
    let first = try await RawConnection.connect(port: echo.port.port)
    let second = try await RawConnection.connect(port: echo.port.port)
    try await first.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    #expect(try await first.text(until: "Ok\n").contains("200 OK"))
    try await second.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    #expect(try await second.text(until: "Ok\n").contains("200 OK"))
    let third = try await RawConnection.connect(port: echo.port.port)
    #expect(try await third.textUntilClose().isEmpty)
    try await first.send("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    _ = try await first.textUntilClose()
    // The server's count falls shortly after the client sees the close.
    #expect(try await eventually { echo.port.connectionCount == 1 })
    let fourth = try await RawConnection.connect(port: echo.port.port)
    try await fourth.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    #expect(try await fourth.text(until: "Ok\n").contains("200 OK"))
    await echo.stop()
  }

  @Test("A drain immediately closes idle connections and connections of unknown protocol")
  func drain() async throws {
    let echo = try await EchoPort.start()
    let undecided = try await RawConnection.connect(port: echo.port.port)
    let idle = try await RawConnection.connect(port: echo.port.port)
    try await idle.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    _ = try await idle.text(until: "Ok\n")
    await echo.stop()
    #expect(try await undecided.textUntilClose().isEmpty)
    #expect(try await idle.textUntilClose().isEmpty)
    #expect(echo.port.connectionCount == 0)
  }

  @Test("Every call of drain waits until the connections are closed")
  func secondDrain() async throws {
    let echo = try await EchoPort.start()
    let client = try await RawConnection.connect(port: echo.port.port)
    try await client.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nx")
    #expect(try await eventually { echo.port.connectionCount == 1 })
    let port = echo.port
    await withTaskGroup(of: Int.self) { group in
      for _ in 0..<2 {
        group.addTask {
          await port.drain(grace: .milliseconds(300))
          return port.connectionCount
        }
      }
      for await open in group { #expect(open == 0) }
    }
    #expect(try await client.textUntilClose().contains("200 OK") == false)
    await echo.stop()
  }
}
