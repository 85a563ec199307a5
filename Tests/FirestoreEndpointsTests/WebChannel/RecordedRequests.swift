// Recorded requests of the official client: closure-library's WebChannel with the options of Firestore's web SDK.
//
// The client listened to a document, wrote it six times, stopped listening and closed both channels. The requests are
// verbatim, except for the session IDs, which the server assigns.

/// One recorded request.
struct RecordedRequest {
  var method: String
  var stream: String
  /// The query, with `{SID}` and `{SESSION}` in place of the session IDs.
  var query: String
  var body: String

  /// A recording with streaming back channels.
  static let streaming: [RecordedRequest] = [
    RecordedRequest(
      method: "POST", stream: "Listen",
      query: """
        VER=8&database=projects%2Fdemo-books%2Fdatabases%2F(default)&RID=38746&CVER=22&X-HTTP-Session-Id\
        =gsessionid&zx=g835yh276bn&t=1
        """,
      body: """
        headers=Authorization%3ABearer%20owner%0D%0AContent-Type%3Atext%2Fplain%0D%0AX-Goog-Api-Client%3\
        Agl-js%2F%20fire%2F12.0.0%0D%0A&count=1&ofs=0&req0___data__=%7B%22database%22%3A%22projects%2Fde\
        mo-books%2Fdatabases%2F(default)%22%2C%22addTarget%22%3A%7B%22documents%22%3A%7B%22documents%22%\
        3A%5B%22projects%2Fdemo-books%2Fdatabases%2F(default)%2Fdocuments%2Fbooks%2Fb1%22%5D%7D%2C%22tar\
        getId%22%3A1002%7D%7D
        """),
    RecordedRequest(
      method: "GET", stream: "Listen",
      query: """
        gsessionid={SESSION}&VER=8&database=projects%2Fdemo-books%2Fdatabases%2F(default)&RID=rpc&SID={S\
        ID}&AID=0&CI=0&TYPE=xmlhttp&zx=xz8sr184yrr6&t=1
        """,
      body: ""),
    RecordedRequest(
      method: "POST", stream: "Write",
      query: """
        VER=8&database=projects%2Fdemo-books%2Fdatabases%2F(default)&RID=82929&CVER=22&X-HTTP-Session-Id\
        =gsessionid&zx=n4hyko7yr17q&t=1
        """,
      body: """
        headers=Authorization%3ABearer%20owner%0D%0AContent-Type%3Atext%2Fplain%0D%0AX-Goog-Api-Client%3\
        Agl-js%2F%20fire%2F12.0.0%0D%0A&count=1&ofs=0&req0___data__=%7B%22database%22%3A%22projects%2Fde\
        mo-books%2Fdatabases%2F(default)%22%7D
        """),
    RecordedRequest(
      method: "GET", stream: "Write",
      query: """
        gsessionid={SESSION}&VER=8&database=projects%2Fdemo-books%2Fdatabases%2F(default)&RID=rpc&SID={S\
        ID}&AID=0&CI=0&TYPE=xmlhttp&zx=6czsmql34x7u&t=1
        """,
      body: ""),
    RecordedRequest(
      method: "POST", stream: "Write",
      query: """
        VER=8&database=projects%2Fdemo-books%2Fdatabases%2F(default)&gsessionid={SESSION}&SID={SID}&RID=\
        82930&AID=1&zx=qwlq3zy84gq8&t=1
        """,
      body: """
        count=1&ofs=1&req0___data__=%7B%22streamToken%22%3A%22MA%3D%3D%22%2C%22writes%22%3A%5B%7B%22upda\
        te%22%3A%7B%22name%22%3A%22projects%2Fdemo-books%2Fdatabases%2F(default)%2Fdocuments%2Fbooks%2Fb\
        1%22%2C%22fields%22%3A%7B%22title%22%3A%7B%22stringValue%22%3A%22K%5Cu00e4fer%20%5Cud83d%5Cude00\
        %22%7D%2C%22pages%22%3A%7B%22integerValue%22%3A%22412%22%7D%7D%7D%7D%5D%7D
        """),
    RecordedRequest(
      method: "POST", stream: "Write",
      query: """
        VER=8&database=projects%2Fdemo-books%2Fdatabases%2F(default)&gsessionid={SESSION}&SID={SID}&RID=\
        82931&AID=2&zx=gqzgeyy4qcm0&t=1
        """,
      body: """
        count=5&ofs=2&req0___data__=%7B%22streamToken%22%3A%22MA%3D%3D%22%2C%22writes%22%3A%5B%7B%22upda\
        te%22%3A%7B%22name%22%3A%22projects%2Fdemo-books%2Fdatabases%2F(default)%2Fdocuments%2Fbooks%2Fb\
        1%22%2C%22fields%22%3A%7B%22n%22%3A%7B%22integerValue%22%3A%220%22%7D%7D%7D%7D%5D%7D&req1___data\
        __=%7B%22streamToken%22%3A%22MA%3D%3D%22%2C%22writes%22%3A%5B%7B%22update%22%3A%7B%22name%22%3A%\
        22projects%2Fdemo-books%2Fdatabases%2F(default)%2Fdocuments%2Fbooks%2Fb1%22%2C%22fields%22%3A%7B\
        %22n%22%3A%7B%22integerValue%22%3A%221%22%7D%7D%7D%7D%5D%7D&req2___data__=%7B%22streamToken%22%3\
        A%22MA%3D%3D%22%2C%22writes%22%3A%5B%7B%22update%22%3A%7B%22name%22%3A%22projects%2Fdemo-books%2\
        Fdatabases%2F(default)%2Fdocuments%2Fbooks%2Fb1%22%2C%22fields%22%3A%7B%22n%22%3A%7B%22integerVa\
        lue%22%3A%222%22%7D%7D%7D%7D%5D%7D&req3___data__=%7B%22streamToken%22%3A%22MA%3D%3D%22%2C%22writ\
        es%22%3A%5B%7B%22update%22%3A%7B%22name%22%3A%22projects%2Fdemo-books%2Fdatabases%2F(default)%2F\
        documents%2Fbooks%2Fb1%22%2C%22fields%22%3A%7B%22n%22%3A%7B%22integerValue%22%3A%223%22%7D%7D%7D\
        %7D%5D%7D&req4___data__=%7B%22streamToken%22%3A%22MA%3D%3D%22%2C%22writes%22%3A%5B%7B%22update%2\
        2%3A%7B%22name%22%3A%22projects%2Fdemo-books%2Fdatabases%2F(default)%2Fdocuments%2Fbooks%2Fb1%22\
        %2C%22fields%22%3A%7B%22n%22%3A%7B%22integerValue%22%3A%224%22%7D%7D%7D%7D%5D%7D
        """),
    RecordedRequest(
      method: "POST", stream: "Listen",
      query: """
        VER=8&database=projects%2Fdemo-books%2Fdatabases%2F(default)&gsessionid={SESSION}&SID={SID}&RID=\
        38747&AID=16&zx=fkj0swwj81ps&t=1
        """,
      body: """
        count=1&ofs=1&req0___data__=%7B%22database%22%3A%22projects%2Fdemo-books%2Fdatabases%2F(default)\
        %22%2C%22removeTarget%22%3A1002%7D
        """),
    RecordedRequest(
      method: "GET", stream: "Listen",
      query: """
        VER=8&database=projects%2Fdemo-books%2Fdatabases%2F(default)&gsessionid={SESSION}&SID={SID}&RID=\
        38748&TYPE=terminate&zx=b9if2jcb20u4
        """,
      body: ""),
    RecordedRequest(
      method: "GET", stream: "Write",
      query: """
        VER=8&database=projects%2Fdemo-books%2Fdatabases%2F(default)&gsessionid={SESSION}&SID={SID}&RID=\
        82932&TYPE=terminate&zx=fh8up22q3e5z
        """,
      body: ""),
  ]
}
