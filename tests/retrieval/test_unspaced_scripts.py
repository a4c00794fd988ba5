"""Chinese and Japanese document sets are found by their words."""

import pytest

from app.index.snapshot import SearchIndex
from app.retrieval.search import search
from tests.retrieval.sets import index_of

CHINESE = {
    "backup.md": "# 备份数据库\n\n每天凌晨两点自动备份数据库，备份保留七天，可以在控制台下载。\n\n"
    "## 恢复\n\n选择一个备份，点击恢复按钮，数据会写回原来的位置。\n",
    "domain.md": "# 绑定域名\n\n在域名服务商处添加一条解析记录，然后点击验证。"
    "证书自动签发和续期。\n",
    "deploy.md": "# 部署应用\n\n运行部署命令后，构建日志会实时显示。构建失败时请检查依赖。\n\n"
    "## 环境变量\n\n密钥不要写进代码，请放在环境变量里。\n",
    "disk.md": "# 持久磁盘\n\n容器重启后，没有挂载磁盘的文件会丢失。上传的图片应当保存在磁盘上。\n",
    # A sentence of more than 64 characters without any mark.
    "limits.md": "# 说明\n\n这个平台的每一个容器都运行在独立的沙箱里并且彼此之间不能直接访问对方的"
    "内存或者文件所以需要通过内部网络地址来互相调用服务接口而限流阈值默认是每分钟六百次请求\n",
}
JAPANESE = {
    "backup.md": "# バックアップ\n\nデータベースは毎晩自動でバックアップされ、"
    "七日間保存されます。\n",
    "domain.md": "# ドメインの設定\n\nDNSにレコードを追加して、確認を押します。"
    "証明書は自動で発行されます。\n",
    "deploy.md": "# デプロイ\n\nコマンドを実行するとビルドのログが表示されます。\n\n"
    "## 環境変数\n\n秘密の値はコードに書かず、環境変数に入れます。\n",
    "disk.md": "# 永続ディスク\n\n再起動すると、ディスクに置いていないファイルは消えます。"
    "人々がアップロードした画像はディスクに置きます。\n",
}


def best_path(index: SearchIndex, query: str) -> str:
    return search(index, query, top_k=3).hits[0].chunk.path


@pytest.fixture(scope="module")
def chinese() -> SearchIndex:
    return index_of(CHINESE)


@pytest.fixture(scope="module")
def japanese() -> SearchIndex:
    return index_of(JAPANESE)


@pytest.mark.parametrize(
    ("query", "path"),
    [
        ("怎么备份数据库", "backup.md"),
        ("域名", "domain.md"),
        ("证书续期", "domain.md"),
        ("图片丢失了怎么办", "disk.md"),
        ("重启", "disk.md"),
        ("环境变量", "deploy.md"),
        ("构建失败", "deploy.md"),
        ("限流", "limits.md"),
        ("限流阈值是多少", "limits.md"),
    ],
)
def test_chinese_pages_are_found_by_their_words(
    chinese: SearchIndex, query: str, path: str
) -> None:
    assert best_path(chinese, query) == path
    assert search(chinese, query, top_k=3).matched


@pytest.mark.parametrize(
    ("query", "path"),
    [
        ("データベースのバックアップはいつですか", "backup.md"),
        ("ﾊﾞｯｸｱｯﾌﾟ", "backup.md"),
        ("証明書", "domain.md"),
        ("DNSレコード", "domain.md"),
        ("環境変数", "deploy.md"),
        ("ビルドのログ", "deploy.md"),
        ("ファイルが消えた", "disk.md"),
        ("画像", "disk.md"),
        ("人々", "disk.md"),
    ],
)
def test_japanese_pages_are_found_by_their_words(
    japanese: SearchIndex, query: str, path: str
) -> None:
    assert best_path(japanese, query) == path
    assert search(japanese, query, top_k=3).matched


@pytest.mark.parametrize("query", ["如何烤蛋糕", "量子力学", "天气预报"])
def test_what_chinese_pages_do_not_say_matches_nothing_well(
    chinese: SearchIndex, query: str
) -> None:
    assert not search(chinese, query, top_k=3).matched


@pytest.mark.parametrize("query", ["ケーキの作り方", "天気", "飛行機の切符"])
def test_what_japanese_pages_do_not_say_matches_nothing_well(
    japanese: SearchIndex, query: str
) -> None:
    assert not search(japanese, query, top_k=3).matched
