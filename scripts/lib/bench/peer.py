"""Runs a Python library over a list, as its own documentation has it: peer.py aiohttp|img2dataset|scrapy LIST FOLDER IN_FLIGHT TIMEOUT PACKAGES."""

import asyncio
import hashlib
import os
import sys


def use_aiohttp(urls, folder, in_flight, timeout):
    import aiohttp

    for shard in range(256):
        os.makedirs(f"{folder}/{shard:02x}")

    async def fetch_all():
        rest = iter(urls)
        limits = {"connector": aiohttp.TCPConnector(limit=in_flight), "timeout": aiohttp.ClientTimeout(sock_read=timeout, sock_connect=timeout)}
        async with aiohttp.ClientSession(**limits) as session:

            async def work():
                for url in rest:
                    try:
                        async with session.get(url) as response:
                            response.raise_for_status()
                            body = await response.read()
                    except (aiohttp.ClientError, asyncio.TimeoutError):
                        continue
                    name = hashlib.md5(url.encode()).hexdigest()
                    path = f"{folder}/{name[:2]}/{name}"
                    with open(path + ".part", "wb") as file:
                        file.write(body)
                    os.rename(path + ".part", path)

            await asyncio.gather(*[work() for _ in range(in_flight)])

    asyncio.run(fetch_all())


def use_img2dataset(path, folder, count, in_flight, timeout):
    os.environ["NO_ALBUMENTATIONS_UPDATE"] = "1"
    from img2dataset import download

    download(
        url_list=path, input_format="txt", output_folder=folder, output_format="files", processes_count=2, thread_count=max(1, in_flight // 2),
        resize_mode="no", disable_all_reencoding=True, number_sample_per_shard=max(100, -(-count // 4)), timeout=int(timeout),
        retries=0, enable_wandb=False, extract_exif=False, compute_hash=None,
    )


def use_scrapy(urls, folder, in_flight, timeout):
    import scrapy
    from scrapy.crawler import CrawlerProcess

    class Spider(scrapy.Spider):
        name = "images"

        async def start(self):
            for first in range(0, len(urls), 100):
                yield scrapy.Request("data:,", dont_filter=True, cb_kwargs={"part": urls[first : first + 100]})

        def parse(self, response, part):
            for url in part:
                yield {"file_urls": [url]}

    settings = {
        "ITEM_PIPELINES": {"scrapy.pipelines.files.FilesPipeline": 1}, "FILES_STORE": folder, "LOG_LEVEL": "CRITICAL", "RETRY_ENABLED": False,
        "CONCURRENT_REQUESTS": in_flight, "CONCURRENT_REQUESTS_PER_DOMAIN": in_flight, "CONCURRENT_ITEMS": in_flight, "DOWNLOAD_DELAY": 0,
        "DOWNLOAD_TIMEOUT": timeout, "TELNETCONSOLE_ENABLED": False, "ROBOTSTXT_OBEY": False,
    }
    process = CrawlerProcess(settings)
    process.crawl(Spider)
    process.start()


if __name__ == "__main__":
    name, path, folder, in_flight, timeout = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), float(sys.argv[5])
    # Behind Python's own modules, of which some packages bring old ones along.
    sys.path.append(sys.argv[6])
    with open(path, encoding="ascii") as file:
        urls = file.read().split()
    if name == "aiohttp":
        use_aiohttp(urls, folder, in_flight, timeout)
    elif name == "img2dataset":
        use_img2dataset(path, folder, len(urls), in_flight, timeout)
    else:
        use_scrapy(urls, folder, in_flight, timeout)
