// Tests which hosts and web pages an emulator's port serves.

import NIOHTTP1
import Testing

@testable import Ports

@Suite("Hosts and origins of requests")
struct RequestOriginTests {
  private let local = RequestOriginPolicy.emulator(hosts: [], origins: [], isRemote: false)
  private let remote = RequestOriginPolicy.emulator(hosts: [], origins: [], isRemote: true)

  private func refusal(
    _ policy: RequestOriginPolicy, _ headers: [(String, String)], _ method: HTTPMethod = .POST
  )
    -> String?
  {
    policy.refusal(
      of: HTTPRequestHead(version: .http1_1, method: method, uri: "/", headers: HTTPHeaders(headers)))
  }

  @Test(
    "Requests to loopback names and addresses are served",
    arguments: [
      "localhost:8080", "LOCALHOST", "db.localhost:9000", "127.0.0.1:1", "10.0.2.2:8080", "[::1]:8080",
      "localhost.",
    ])
  func loopbackHosts(host: String) { #expect(refusal(local, [("Host", host)]) == nil) }

  @Test(
    "Host names that DNS rebinding could use are rejected, and the error names the option that allows a host",
    arguments: ["evil.example", "localhost.evil.example:8080", "127.0.0.1.evil.example", "hearth"])
  func foreignHosts(host: String) throws {
    let text = try #require(refusal(local, [("Host", host)]))
    #expect(text.contains("--allow-host \(host.split(separator: ":")[0])"))
  }

  @Test("A remote emulator serves names without a dot and configured names")
  func remoteHosts() {
    #expect(refusal(remote, [("Host", "hearth:8080")]) == nil)
    #expect(refusal(remote, [("Host", "hearth.example")]) != nil)
    let named = RequestOriginPolicy.emulator(hosts: ["Hearth.example"], origins: [], isRemote: false)
    #expect(refusal(named, [("Host", "hearth.EXAMPLE:80")]) == nil)
  }

  @Test(
    "Requests from pages of this machine are served",
    arguments: [
      "http://localhost:3000", "https://localhost", "http://127.0.0.1:5000", "http://[::1]:3000",
      "capacitor://localhost",
      "http://app.localhost:4200",
    ])
  func loopbackPages(origin: String) {
    #expect(refusal(local, [("Host", "localhost"), ("Origin", origin)]) == nil)
  }

  @Test(
    "Requests from foreign pages are rejected, and the error names the option that allows an origin",
    arguments: [
      "https://evil.example", "http://localhost.evil.example", "http://127.0.0.1.evil.example", "null",
      "http://192.168.0.7:3000", "http://localhost@evil.example", "localhost",
    ])
  func foreignPages(origin: String) throws {
    let text = try #require(refusal(local, [("Host", "localhost"), ("Origin", origin)]))
    #expect(text.contains("--allow-origin \(origin)"))
  }

  @Test("Requests from configured origins are served, and so are requests to the hosts of these origins")
  func configuredPages() {
    let policy = RequestOriginPolicy.emulator(
      hosts: [], origins: ["https://Editor.example:8443", "null"], isRemote: false)
    #expect(refusal(policy, [("Host", "editor.example"), ("Origin", "https://editor.example:8443")]) == nil)
    #expect(refusal(policy, [("Host", "localhost"), ("Origin", "null")]) == nil)
    #expect(refusal(policy, [("Host", "localhost"), ("Origin", "https://editor.example")]) != nil)
  }

  @Test("A remote emulator serves requests from pages of the host that the request names")
  func sameHost() {
    let headers = [("Host", "192.168.0.7:8080"), ("Origin", "http://192.168.0.7:3000")]
    #expect(refusal(remote, headers) == nil)
    #expect(refusal(local, headers) != nil)
    #expect(refusal(remote, [("Host", "192.168.0.7:8080"), ("Origin", "http://192.168.0.8:3000")]) != nil)
  }

  @Test("Scripts of foreign pages are rejected even without an Origin header, but links from them work")
  func fetchMetadata() {
    let script = [("Host", "localhost"), ("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "no-cors")]
    #expect(refusal(local, script, .GET) != nil)
    #expect(refusal(local, script + [("Referer", "https://evil.example/page")], .GET) != nil)
    #expect(refusal(local, script + [("Referer", "http://127.0.0.1:3000/page?x=http://y")], .GET) == nil)
    let link = [("Host", "localhost"), ("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "navigate")]
    #expect(refusal(local, link, .GET) == nil)
    #expect(refusal(local, link, .POST) != nil)
    #expect(refusal(local, [("Host", "localhost"), ("Sec-Fetch-Site", "same-site")], .GET) == nil)
  }

  @Test("A server that verifies credentials serves every host and origin")
  func production() {
    #expect(refusal(.any, [("Host", "evil.example"), ("Origin", "https://evil.example")]) == nil)
  }
}
