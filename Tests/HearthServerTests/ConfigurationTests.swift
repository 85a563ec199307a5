// Tests of the four sources of a setting (command-line flag, environment variable, firebase.json, default), their
// precedence, and every rejected combination of settings.

import HearthServer
import Logging
import Testing

@Suite("Configuration")
struct ConfigurationTests {
  private func resolve(
    _ environment: [String: String] = [:], file: String? = nil, named path: String = "firebase.json",
    _ change: (inout ServeFlags) -> Void = { _ in }
  ) throws(HearthError) -> HearthConfiguration {
    var flags = ServeFlags()
    flags.ephemeral = true
    change(&flags)
    return try HearthConfiguration.resolve(flags, environment: environment) { requestedPath in
      requestedPath == path ? file.map { Array($0.utf8) } : nil
    }
  }

  private func error(
    _ environment: [String: String] = [:], file: String? = nil,
    _ change: (inout ServeFlags) -> Void = { _ in }
  ) -> String {
    do {
      _ = try resolve(environment, file: file, change)
      return ""
    } catch {
      return error.description
    }
  }

  @Test("By default the server uses the emulator suite's ports on loopback, has no TLS and trusts no caller")
  func defaults() throws {
    let configuration = try resolve()
    #expect(configuration.storage == .ephemeral)
    #expect(configuration.firestore == .init(host: "127.0.0.1", port: 8080))
    #expect(configuration.database == .init(host: "127.0.0.1", port: 9000))
    #expect(configuration.emulator == false)
    #expect(configuration.tls == nil)
    #expect(configuration.logLevel == .notice)
  }

  @Test("A database secret that is short or not a text is rejected with the file that contains it")
  func databaseSecrets() throws {
    let secret = String(repeating: "s", count: 32)
    for (json, isValid) in [
      (#"["\#(secret)"]"#, true), ("[]", true), (#"["short"]"#, false), (#"["\#(secret)",7]"#, false),
      (#""\#(secret)""#, false), ("null", false),
    ] {
      let file = #"{"databaseSecrets": \#(json)}"#
      do throws(HearthError) {
        _ = try resolve(["HEARTH_AUTH_CONFIG": "auth.json"], file: file, named: "auth.json")
        #expect(isValid, "\(json)")
      } catch {
        #expect(!isValid && error.description.contains("auth.json: databaseSecrets"), "\(json): \(error)")
      }
    }
  }

  @Test(
    "The same port for Firestore and the Realtime Database is rejected; with port 0 each gets a free port"
  )
  func samePortTwice() throws {
    let file = #"{"emulators": {"database": {"port": 8080}}}"#
    for message in [
      error(file: file), error(["HEARTH_FIRESTORE_PORT": "9000"]), error { $0.databasePort = 8080 },
      error { ($0.host, $0.firestorePort, $0.databasePort) = ("localhost", 7, 7) },
    ] {
      #expect(message.contains("--firestore-port") && message.contains("--database-port"), "\(message)")
    }
    #expect(error { ($0.firestorePort, $0.databasePort) = (0, 0) } == "")
    let differentHosts =
      #"{"emulators": {"firestore": {"host": "127.0.0.2"}, "database": {"host": "127.0.0.3", "port": 8080}}}"#
    #expect(error(file: differentHosts) == "")
  }

  @Test(
    "A flag overrides an environment variable, which overrides firebase.json, which overrides the default")
  func precedence() throws {
    let file =
      #"{"emulators": {"firestore": {"port": 1003}, "database": {"port": 2003, "host": "localhost"}}}"#
    #expect(try resolve(file: file).firestore.port == 1003)
    #expect(try resolve(["HEARTH_FIRESTORE_PORT": "1002"], file: file).firestore.port == 1002)
    #expect(
      try resolve(["HEARTH_FIRESTORE_PORT": "1002"], file: file) { $0.firestorePort = 1001 }.firestore.port
        == 1001)
    #expect(try resolve(file: file).database == .init(host: "localhost", port: 2003))
    #expect(try resolve(["HEARTH_HOST": "127.0.0.2"], file: file).database?.host == "127.0.0.2")
    #expect(
      try resolve(["HEARTH_HOST": "127.0.0.2"], file: file) { $0.host = "127.0.0.3" }.firestore.host
        == "127.0.0.3")
  }

  @Test("Only an emulator opens a hub port, by default that of the emulator suite")
  func hub() throws {
    #expect(try resolve().hub == nil)
    #expect(error { $0.hubPort = 4401 }.contains("--emulator"))
    let usual = try resolve { $0.emulator = true }
    #expect(usual.hub == .init(port: 4400) && !usual.hubPortIsFixed)
    let file = #"{"emulators": {"hub": {"port": 4402, "host": "localhost"}}}"#
    let named = try resolve(file: file) { $0.emulator = true }
    #expect(named.hub == .init(host: "localhost", port: 4402) && named.hubPortIsFixed)
    #expect(try resolve(["HEARTH_HUB_PORT": "4403"], file: file) { $0.emulator = true }.hub?.port == 4403)
    #expect(
      error(file: #"{"emulators": {"hub": {"host": "0.0.0.0"}}}"#) { $0.emulator = true }.contains("0.0.0.0"))
  }

  @Test(
    "firebase.json names the index files of one or several databases; an option selects automatic or strict indexes"
  )
  func indexFiles() throws {
    let one = try resolve(file: #"{"firestore": {"indexes": "firestore.indexes.json"}}"#)
    #expect(one.indexFiles == [.init(path: "firestore.indexes.json")])
    #expect(one.indexMode == .automatic)
    let several =
      #"{"firestore": [{"database": "(default)", "indexes": "a.json"}, {"database": "b", "indexes": "/b.json"}]}"#
    let two = try resolve(file: several, named: "app/firebase.json") { $0.config = "app/firebase.json" }
    #expect(two.indexFiles == [.init(path: "app/a.json"), .init(database: "b", path: "/b.json")])
    #expect(error(file: #"{"firestore": {"indexes": 7}}"#).contains("firestore.indexes must be"))
    #expect(error(file: #"{"firestore": [{"indexes": "a"}, {"indexes": "b"}]}"#).contains("twice"))
    #expect(try resolve { $0.indexes = "strict" }.indexMode == .strict)
    #expect(try resolve(["HEARTH_INDEXES": "strict"]).indexMode == .strict)
    #expect(error(["HEARTH_INDEXES": "some"]).contains("automatic or strict"))
  }

  @Test("A byte-order mark at the start of a file is ignored, also in reported positions")
  func byteOrderMark() throws {
    let file = #"{"emulators": {"firestore": {"port": 1003}}} // A comment."#
    #expect(try resolve(file: "\u{FEFF}" + file).firestore.port == 1003)
    for mark in ["", "\u{FEFF}"] {
      #expect(error(file: mark + "{x").hasPrefix("firebase.json:1:2: "), "\(error(file: mark + "{x"))")
      #expect(error(file: mark + "{\n  x").hasPrefix("firebase.json:2:3: "))
    }
  }

  @Test("Every option has an environment variable")
  func variables() throws {
    let configuration = try HearthConfiguration.resolve(
      ServeFlags(),
      environment: [
        "HEARTH_DATA": "/tmp/x", "HEARTH_PROJECT": "demo-a", "HEARTH_HOST": "127.0.0.5",
        "HEARTH_FIRESTORE_PORT": "1",
        "HEARTH_DATABASE_PORT": "2", "HEARTH_EMULATOR": "true", "HEARTH_ALLOW_REMOTE_EMULATOR": "1",
        "HEARTH_TLS_CERT": "c.pem", "HEARTH_TLS_KEY": "k.pem", "HEARTH_LOG_LEVEL": "Debug",
      ]
    ) { _ in nil }
    #expect(configuration.storage == .directory("/tmp/x"))
    #expect(configuration.project == "demo-a")
    #expect(configuration.firestore == .init(host: "127.0.0.5", port: 1))
    #expect(configuration.database == .init(host: "127.0.0.5", port: 2))
    #expect(configuration.emulator)
    #expect(configuration.allowRemoteEmulator)
    #expect(configuration.tls == .init(certificate: "c.pem", key: "k.pem"))
    #expect(configuration.logLevel == .debug)
  }

  @Test("Exactly one storage is required")
  func exactlyOneStorage() throws {
    #expect(error { $0.ephemeral = false }.contains("--data"))
    #expect(error { $0.data = "/tmp/x" }.contains("exclude each other"))
    #expect(
      error(["HEARTH_DATA": "/x", "HEARTH_EPHEMERAL": "1"]) { $0.ephemeral = false }.contains("exclude"))
    // Both environment variables together would be an error, but a flag overrides the two variables.
    #expect(try resolve(["HEARTH_DATA": "/x"]).storage == .ephemeral)
    #expect(
      try resolve(["HEARTH_EPHEMERAL": "1"]) {
        $0.ephemeral = false
        $0.data = "/y"
      }.storage == .directory("/y"))
  }

  @Test(
    "An invalid value is an error that names its source",
    arguments: [
      ("HEARTH_FIRESTORE_PORT", "http"), ("HEARTH_FIRESTORE_PORT", "65536"), ("HEARTH_DATABASE_PORT", "-1"),
      ("HEARTH_EMULATOR", "maybe"), ("HEARTH_LOG_LEVEL", "loud"), ("HEARTH_CONFIG", "/missing.json"),
    ])
  func invalidValues(name: String, value: String) {
    let message = error([name: value])
    #expect(message.contains(name) || message.contains("/missing.json"))
  }

  @Test("An emulator listens beyond loopback only with an explicit permission")
  func remoteEmulator() throws {
    for host in ["0.0.0.0", "192.168.1.4", "::", "example.com", "127.0.0.1.example.com", "1270.0.0.1"] {
      let message = error {
        $0.emulator = true
        $0.host = host
      }
      #expect(message.contains("--allow-remote-emulator"), "\(host)")
      #expect(message.contains(host))
    }
    for host in ["127.0.0.1", "127.9.9.9", "localhost", "::1"] {
      #expect(
        error {
          $0.emulator = true; $0.host = host
        }.isEmpty, "\(host)")
    }
    #expect(
      error {
        $0.emulator = true; $0.host = "0.0.0.0"; $0.allowRemoteEmulator = true
      }.isEmpty)
    #expect(error { $0.host = "0.0.0.0" }.isEmpty)
    // firebase.json can name such a host, but it cannot give this permission.
    let file = #"{"emulators": {"database": {"host": "0.0.0.0"}}}"#
    #expect(error(file: file) { $0.emulator = true }.contains("--allow-remote-emulator"))
  }

  @Test("A certificate requires a key, and a key requires a certificate")
  func certificateAndKey() {
    #expect(error { $0.tlsCertificate = "c" }.contains("--tls-key"))
    #expect(error { $0.tlsKey = "k" }.contains("--tls-cert"))
  }

  @Test("firebase.json names the rules files of one or several Realtime Databases")
  func databaseRulesFiles() throws {
    let one = try resolve(file: "{ // note\n \"database\": { /* here */ \"rules\": \"x.json\" } }")
    #expect(one.databaseRulesFiles == [.init(path: "x.json")])
    let several = #"{"database": [{"rules": "a.json"}, {"instance": "b", "rules": "/b.json"}]}"#
    let two = try resolve(file: several, named: "app/firebase.json") { $0.config = "app/firebase.json" }
    #expect(two.databaseRulesFiles == [.init(path: "app/a.json"), .init(instance: "b", path: "/b.json")])
    #expect(error(file: #"{"database": {"rules": 7}}"#).contains("database.rules must be"))
    #expect(error(file: #"{"database": [{"target": "t", "rules": "a"}]}"#).contains("deploy target"))
    #expect(error(file: #"{"database": [{"rules": "a"}, {"rules": "b"}]}"#).contains("twice"))
  }

  @Test("firebase.json names the rules files of one or several Firestore databases")
  func rulesFiles() throws {
    let one = try resolve(file: "{ // note\n \"firestore\": { /* here */ \"rules\": \"x.rules\" } }")
    #expect(one.rulesFiles == [.init(path: "x.rules")])
    let several =
      #"{"firestore": [{"database": "a", "rules": "a.rules"}, {"database": "b", "rules": "/b.rules"}]}"#
    let two = try resolve(file: several, named: "app/firebase.json") { $0.config = "app/firebase.json" }
    #expect(
      two.rulesFiles == [.init(database: "a", path: "app/a.rules"), .init(database: "b", path: "/b.rules")])
    #expect(error(file: #"{"firestore": {"rules": 7}}"#).contains("firestore.rules must be"))
    #expect(error(file: #"{"firestore": [{"rules": "a"}, {"rules": "b"}]}"#).contains("twice"))
  }

  @Test("A firebase.json without rules is read, with comments and unknown sections")
  func fileWithoutRules() throws {
    let file = """
      {
        // ports, "quoted" // twice
        "hosting": {"public": "dist", "note": "a // b /* c */ \\" d"},
        "firestore": {"indexes": "firestore.indexes.json", "rules": null},
        "emulators": {"firestore": {"port": 8181} /* , "x": 1 */, "ui": {"enabled": true}}
      }
      """
    #expect(try resolve(file: file).firestore.port == 8181)
  }

  @Test(
    "A malformed firebase.json is rejected with its file name",
    arguments: [
      "", "[]", "{", "nonsense", #"{"emulators": {"firestore": {"port": "8080"}}}"#,
      #"{"emulators": {"firestore": {"port": 70000}}}"#, #"{"emulators": {"database": {"host": 7}}}"#,
    ])
  func malformedFile(file: String) {
    #expect(error(file: file).contains("firebase.json"))
  }

  @Test(
    "A firebase.json section of the wrong type is rejected with its name and the required type",
    arguments: [
      (#"{"firestore": "x"}"#, "firestore must be an object"),
      (#"{"firestore": [{}, "x"]}"#, "firestore[1] must be an object"),
      (#"{"firestore": {"indexes": "i.json", "database": 7}}"#, "firestore.database must be"),
      (#"{"database": 7}"#, "database must be an object"), (#"{"database": [[]]}"#, "database[0] must be"),
      (#"{"emulators": []}"#, "emulators must be an object"),
      (#"{"emulators": "on"}"#, "emulators must be an object"),
      (#"{"emulators": {"firestore": 8080}}"#, "emulators.firestore must be an object"),
      (#"{"emulators": {"database": [9000]}}"#, "emulators.database must be an object"),
      (#"{"emulators": {"hub": true}}"#, "emulators.hub must be an object"),
    ])
  func invalidSections(file: String, expected: String) {
    #expect(error(file: file).contains("firebase.json: \(expected)"), "\(error(file: file))")
  }

  @Test(
    "A duplicate member of firebase.json is rejected with its position, because it could hide rules")
  func duplicateMember() {
    let file = "{\n  \"firestore\": {\"rules\": \"a.rules\"},\n  \"firestore\": {}\n}"
    let message = error(file: file)
    #expect(
      message.contains("firebase.json:3:16") && message.contains("'firestore' occurs twice"), "\(message)")
    #expect(error(file: #"{"emulators": {"hub": {"port": 1, "port": 2}}}"#).contains("'port' occurs twice"))
  }

  @Test(
    "A project ID may contain only letters, digits, '-', '_', '.' and ':'",
    arguments: ["Bad Proj!", "", "-a", "a/b", "é"])
  func projectID(id: String) {
    #expect(error { $0.project = id }.contains("'\(id)' is not the id of a project"))
    #expect(error { $0.project = "example.com:my-project_2" } == "")
  }

  @Test("--config names another file, which must exist")
  func namedFile() throws {
    let file = #"{"emulators": {"firestore": {"port": 7}}}"#
    #expect(try resolve(file: file, named: "x.json") { $0.config = "x.json" }.firestore.port == 7)
    #expect(error { $0.config = "y.json" }.contains("y.json"))
  }
}
